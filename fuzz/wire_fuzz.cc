// The requests of users, as an agent reads them from a stream, and its answers, as they read those.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace {

using namespace remuda;  // NOLINT: a program

void read_request(const std::string& payload) {
  const auto request = wire::parse_request(payload);
  if (!request) return;
  const std::string text = wire::text_of(*request);
  const auto again = wire::parse_request(text);
  REMUDA_CHECK(again.has_value(), "a request that was read can be written and read again");
  REMUDA_CHECK(wire::text_of(*again) == text, "and is the same then");
}

void read_answer(const std::string& payload) {
  const auto answer = wire::parse_answer(payload);
  if (!answer) return;
  (void)wire::parse_page(answer->result);
  (void)wire::parse_greeting(answer->result);
  (void)wire::parse_applied(answer->result);
  REMUDA_CHECK(wire::parse_answer(wire::text_of(*answer)).has_value(), "an answer that was read can be written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  wire::FrameReader reader(wire::kLargestRequest);
  for (size_t at = 0; at < text.size(); at += 7) {
    reader.add(text.substr(at, 7));
    for (auto next = reader.next(); next && *next; next = reader.next()) read_request(**next);
    if (!reader.next()) break;
  }
  read_request(std::string(text));
  read_answer(std::string(text));
  return 0;
}

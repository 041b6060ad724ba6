// Any bytes are a greeting, or an error of one line; what is taken is written again as the same bytes. The same bytes
// as a report of failure give an error that a terminal can show.
#include <cstring>

#include "base/check.h"
#include "comm/failure_report.h"
#include "comm/handshake.h"

using namespace remuda::comm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto greeting = parse_greeting(bytes)) {
    const auto again = encode(*greeting);
    REMUDA_CHECK(std::memcmp(again.data(), data, size) == 0, "a greeting is written as it was read");
  } else {
    REMUDA_CHECK(greeting.error().message.find('\n') == std::string::npos, "an error is one line");
  }
  FailureReport report;
  std::memcpy(&report, data, std::min(size, sizeof report));
  if (const auto cause = cause_in(report, 1, 0))
    for (const char character : cause->message)
      REMUDA_CHECK(character == '\t' || static_cast<unsigned char>(character) >= ' ',
                   "an error has no control characters");
  return 0;
}

// Any text is a message of a rank, or an error; what is taken is written and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "quorum/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace remuda::quorum;
  const auto message = parse_message(std::string_view(reinterpret_cast<const char*>(bytes), size));
  if (!message) return 0;
  const std::string text = to_text(*message);
  const auto again = parse_message(text);
  REMUDA_CHECK(again.has_value(), "a message that was read can be written and read again");
  REMUDA_CHECK(to_text(*again).size() <= text.size() || message->cause.size() > kLongestCause, "and does not grow");
  return 0;
}

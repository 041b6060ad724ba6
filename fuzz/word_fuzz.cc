// Any text is a word of a rank, or an error; what is taken is written and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "quorum/word.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace remuda::quorum;
  const auto word = parse_word(std::string_view(reinterpret_cast<const char*>(bytes), size));
  if (!word) return 0;
  const std::string text = to_text(*word);
  const auto again = parse_word(text);
  REMUDA_CHECK(again.has_value(), "a word that was read can be written and read again");
  REMUDA_CHECK(to_text(*again).size() <= text.size() || word->cause.size() > kLongestCause, "and does not grow");
  return 0;
}

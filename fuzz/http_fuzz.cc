// The answers of a metadata address, which may be anybody's: HTTP, and what the three clouds write.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "spot/cloud.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace remuda::spot;  // NOLINT: a program
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto part = parse_http(text, false), whole = parse_http(text, true);
  if (part && *part) REMUDA_CHECK(whole && *whole && (*whole)->body == (*part)->body, "what is whole stays so");
  if (whole) REMUDA_CHECK(whole->has_value(), "nothing more comes");
  for (const auto& notice : {aws_notice(text), gcp_notice(text), azure_notice(text, "box")})
    if (notice && *notice) REMUDA_CHECK((*notice)->sentence.size() < 400, "a sentence is short");
  return 0;
}

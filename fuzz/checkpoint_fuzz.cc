// Any bytes are the manifest of a checkpoint, which is written back as the same, or a usage error of one line; also
// with the right sum, which no chance finds.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "checkpoint/manifest.h"
#include "checkpoint/pieces.h"

namespace {

void check_manifest(const std::string& text) {
  namespace checkpoint = remuda::checkpoint;
  const auto manifest = checkpoint::parse_manifest(text, "manifest.json");
  if (manifest) {
    const auto again = checkpoint::parse_manifest(remuda::to_line(to_json(*manifest)), "manifest.json");
    REMUDA_CHECK(again && to_json(*again) == to_json(*manifest), "what is written can be read");
    REMUDA_CHECK(!manifest->files.empty(), "a checkpoint has files");
  } else {
    REMUDA_CHECK(manifest.error().kind == remuda::ErrorKind::usage, "bad input is a usage error");
    REMUDA_CHECK(manifest.error().message.find('\n') == std::string::npos, "an error is one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace checkpoint = remuda::checkpoint;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_manifest(text);
  if (const auto json = remuda::parse_json(text, "manifest.json"))
    check_manifest(remuda::to_line(checkpoint::sealed(*json)));
  if (const auto name = checkpoint::parse_piece_name(text))
    REMUDA_CHECK(checkpoint::parse_piece_name(text_of(*name)) == name, "a name is read as it was written");
  return 0;
}

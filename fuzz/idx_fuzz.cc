// Any bytes are a pair of image and label files, or a usage error; what is read stays within what was given. The first
// two bytes say where the images end and the labels begin.
#include <algorithm>
#include <cstdint>
#include <string>
#include <sys/mman.h>

#include "base/check.h"
#include "base/file.h"
#include "data/image_set.h"

namespace {

/// A file in memory, and the path under which it can be opened.
struct MemoryFile {
  explicit MemoryFile(std::string_view bytes) : fd(::memfd_create("idx_fuzz", MFD_CLOEXEC)) {
    REMUDA_CHECK(fd && remuda::write_all(fd.get(), bytes, "memory"), "there is memory");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd.get()); }
  remuda::Fd fd;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t cut = std::min<size_t>(data[0] * 256 + data[1], bytes.size());
  const MemoryFile images(bytes.substr(0, cut)), labels(bytes.substr(cut));
  const auto set = remuda::data::ImageSet::open(images.path(), labels.path());
  if (!set) {
    const std::string& message = set.error().message;
    REMUDA_CHECK(set.error().kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    REMUDA_CHECK(message.find("/proc/self/fd/") != std::string::npos, "an error names the file");
    return 0;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < set->size(); ++i) {
    REMUDA_CHECK(set->label(i) >= 0 && set->label(i) < set->classes(), "a label is a class");
    for (const uint8_t value : set->pixels(i)) sum += value;
  }
  REMUDA_CHECK(sum <= 255 * set->size() * set->shape().bytes(), "a pixel is a byte");
  return 0;
}

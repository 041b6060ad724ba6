// Any bytes are a file of CIFAR's records, or a usage error of one line that names it; each label is a class. The first
// byte repeats the others, since a record is larger than a fuzzer's input usually is.
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "data/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string bytes;
  for (int i = 0; i <= data[0]; ++i) bytes.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const remuda::Fd file(::memfd_create("cifar_fuzz", MFD_CLOEXEC));
  REMUDA_CHECK(file && remuda::write_all(file.get(), bytes, "memory"), "there is memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const auto set = remuda::data::CifarSet::open(path, remuda::data::Split::train);
  if (!set) {
    const std::string& message = set.error().message;
    REMUDA_CHECK(set.error().kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
    REMUDA_CHECK(message.find('\n') == std::string::npos, "an error is one line");
    REMUDA_CHECK(message.find(path) != std::string::npos, "an error names the file");
    return 0;
  }
  std::vector<uint8_t> values(set->shape().bytes());
  for (size_t i = 0; i < set->size(); ++i) {
    REMUDA_CHECK(set->label(i) >= 0 && set->label(i) < set->classes(), "a label is a class");
    REMUDA_CHECK(set->read(i, values).has_value(), "a record that is there can be read");
  }
  return 0;
}

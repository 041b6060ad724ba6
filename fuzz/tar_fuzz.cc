// Any bytes are an archive whose members lie in it, or a usage error of one line; so is the set of images in it.
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/mman.h>

#include "base/check.h"
#include "base/file.h"
#include "data/image_files.h"
#include "data/tar.h"

namespace {

void expect_users_error(const remuda::Error& error) {
  REMUDA_CHECK(error.kind == remuda::ErrorKind::usage, "a wrong file is the user's error");
  REMUDA_CHECK(error.message.find('\n') == std::string::npos, "an error is one line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const remuda::Fd file(::memfd_create("tar_fuzz", MFD_CLOEXEC));
  REMUDA_CHECK(file && remuda::write_all(file.get(), bytes, "memory"), "there is memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  if (const auto members = remuda::data::list_tar(file.get(), path); !members)
    expect_users_error(members.error());
  else
    for (const auto& member : *members)
      REMUDA_CHECK(member.offset <= size && member.bytes <= size - member.offset, "a member lies in the archive");
  if (const auto set = remuda::data::ImageFiles::open(path, {.size = 4}); !set) expect_users_error(set.error());
  return 0;
}

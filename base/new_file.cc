#include "base/new_file.h"

#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <unistd.h>

namespace remuda {
namespace {

std::string unused_name() {
  std::random_device random;
  return fmt::format(".remuda-{:08x}{:08x}", random(), random());
}

}  // namespace

NewFile NewFile::in(int folder, mode_t mode) {
  NewFile file(folder);
  file.fd_.reset(::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (file.fd_) return file;
  std::string name = unused_name();
  file.fd_.reset(::openat(folder, name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode));
  if (file.fd_) file.name_ = std::move(name);
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : folder_(other.folder_), name_(std::exchange(other.name_, {})), fd_(std::move(other.fd_)) {}

NewFile::~NewFile() {
  if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
}

bool NewFile::link_as(const std::string& name) const {
  if (!name_.empty()) return ::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0;
  const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
  return ::linkat(AT_FDCWD, self.c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool NewFile::rename_to(const std::string& name) {
  if (name_.empty()) {
    std::string own = unused_name();
    if (!link_as(own)) return false;
    name_ = std::move(own);
  }
  if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) return false;
  name_.clear();
  return true;
}

}  // namespace remuda

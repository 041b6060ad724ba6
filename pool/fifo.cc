#include "pool/fifo.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"

namespace remuda::pool {

bool has_reader(const Folder& folder, const std::string& name) {
  const Fd end(::openat(folder.fd.get(), name.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  return end || (errno != ENXIO && errno != ENOENT);
}

bool is_new(const Folder& folder, const std::string& name) {
  constexpr double kNew_s = 60;
  struct stat info{};
  return ::fstatat(folder.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         wall_s() - static_cast<double>(info.st_mtim.tv_sec) < kNew_s;
}

}  // namespace remuda::pool

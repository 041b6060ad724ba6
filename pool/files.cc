#include "pool/files.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace remuda::pool {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

/// A file without a name, or where there can be none, one with a name that nobody else uses; gone when this goes.
class Draft {
 public:
  explicit Draft(const std::string& path)
      : fd_(::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kFileMode)) {
    if (fd_) return;
    std::random_device random;
    name_ = fmt::format("{}.{:08x}{:08x}", path, random(), random());
    fd_.reset(::open(name_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kFileMode));
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  int fd() const { return fd_.get(); }
  std::string path() const { return name_.empty() ? fmt::format("/proc/self/fd/{}", fd_.get()) : name_; }

 private:
  std::string name_;
  Fd fd_;
};

}  // namespace

Result<void> make_like_parent(const std::string& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0) return share_with_group(path, folder_of(path));
  if (errno == EEXIST) return {};
  return failed(fmt::format("cannot make the folder {}: {}", path, errno_text(errno)));
}

Result<void> share_with_group(const std::string& path, const std::string& folder) {
  struct stat above{}, own{};
  const auto refuse = [&] {
    return failed(fmt::format("cannot share {} with its group: {}", path, errno_text(errno)));
  };
  if (::stat(folder.c_str(), &above) != 0 || ::stat(path.c_str(), &own) != 0) return refuse();
  if ((above.st_mode & 0020) == 0 || own.st_uid != ::geteuid()) return {};
  if (own.st_gid != above.st_gid && ::chown(path.c_str(), static_cast<uid_t>(-1), above.st_gid) != 0) return refuse();
  const mode_t mode = S_ISDIR(own.st_mode) ? 0770 | S_ISGID : 0660;
  if (::chmod(path.c_str(), mode) != 0) return refuse();
  return {};
}

Result<void> create_file(const std::string& path, const std::string& content) {
  const auto refuse = [&] { return failed(fmt::format("cannot write {}: {}", path, errno_text(errno))); };
  const Draft draft(path);
  if (draft.fd() < 0) return refuse();
  REMUDA_TRY(write_all(draft.fd(), content, path));
  if (::fsync(draft.fd()) != 0) return refuse();
  REMUDA_TRY(share_with_group(draft.path(), folder_of(path)));
  const bool is_there = ::linkat(AT_FDCWD, draft.path().c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  if (!is_there && errno != EEXIST) return refuse();
  return {};
}

}  // namespace remuda::pool

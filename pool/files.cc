#include "pool/files.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace remuda::pool {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

tl::unexpected<Error> cannot(const char* what, const std::string& path) {
  return failed(fmt::format("cannot {} {}: {}", what, path, errno_text(errno)));
}

tl::unexpected<Error> is_foreign(const std::string& path) {
  return failed(
      fmt::format("cannot use {}: it is a link, has a second name or is of another kind; somebody else may have put it "
                  "there: remove it",
                  path));
}

/// Also works for descriptors opened with O_PATH. Files of other users stay as they are: their owners share them.
Result<void> share(int fd, const Folder& folder, const std::string& name) {
  struct stat above{}, own{};
  const auto refuse = [&] {
    return failed(fmt::format("cannot share {} with its group: {}", folder.path_of(name), errno_text(errno)));
  };
  if (::fstat(folder.fd.get(), &above) != 0 || ::fstat(fd, &own) != 0) return refuse();
  if ((above.st_mode & S_IWGRP) == 0 || own.st_uid != ::geteuid()) return {};
  const mode_t mode = S_ISDIR(own.st_mode) ? 0770 | S_ISGID | (own.st_mode & S_ISVTX) : 0660;
  if (own.st_gid == above.st_gid && (own.st_mode & 07777) == mode) return {};
  if (own.st_gid != above.st_gid &&
      ::fchownat(fd, "", static_cast<uid_t>(-1), above.st_gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return refuse();
  if (::chmod(fmt::format("/proc/self/fd/{}", fd).c_str(), mode) != 0) return refuse();
  return {};
}

Fd open_in(const Folder& folder, const std::string& name, int flags) {
  return Fd(::openat(folder.fd.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
}

bool is_of_kind(int fd, mode_t kind) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == kind && info.st_nlink == 1;
}

}  // namespace

Result<Folder> open_pool_folder(const std::string& path) {
  Folder folder{path, Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  if (!folder.fd) return cannot("open the folder", path);
  return folder;
}

Result<Folder> open_folder(const Folder& above, const std::string& name) {
  Folder folder{above.path_of(name), open_in(above, name, O_PATH | O_DIRECTORY)};
  if (!folder.fd && errno == ENOTDIR) return is_foreign(folder.path);
  if (!folder.fd) return cannot("open the folder", folder.path);
  return folder;
}

Result<Folder> make_folder_in(const Folder& above, const std::string& name) {
  if (::mkdirat(above.fd.get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return cannot("make the folder", above.path_of(name));
  REMUDA_ASSIGN(Folder folder, open_folder(above, name));
  REMUDA_TRY(share(folder.fd.get(), above, name));
  return folder;
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  Fd fd = open_in(folder, ".", O_RDONLY | O_DIRECTORY);
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, Close> stream(fd ? ::fdopendir(fd.get()) : nullptr);
  if (!stream) return names;
  (void)fd.release();  // the stream closes it
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

Result<Fd> make_pipe(const Folder& folder, const std::string& name, int flags) {
  ::unlinkat(folder.fd.get(), name.c_str(), 0);  // left by a process of an earlier boot
  if (::mkfifoat(folder.fd.get(), name.c_str(), kFileMode) != 0) return cannot("make the pipe", folder.path_of(name));
  Fd fd = open_in(folder, name, flags | O_NONBLOCK);
  if (!fd && errno == ELOOP) return is_foreign(folder.path_of(name));
  if (!fd) return cannot("make the pipe", folder.path_of(name));
  if (!is_of_kind(fd.get(), S_IFIFO)) return is_foreign(folder.path_of(name));
  REMUDA_TRY(share(fd.get(), folder, name));
  return fd;
}

/// It is not opened: SQLite loses its locks on a file when another descriptor of this process for it is closed.
Result<bool> has_plain_file(const Folder& folder, const std::string& name) {
  const Fd fd = open_in(folder, name, O_PATH);
  if (!fd && errno == ENOENT) return false;
  if (!fd) return cannot("write", folder.path_of(name));
  if (!is_of_kind(fd.get(), S_IFREG)) return is_foreign(folder.path_of(name));
  if (::faccessat(folder.fd.get(), name.c_str(), R_OK | W_OK, AT_EACCESS) != 0 && errno != ENOENT)  // it may be removed
    return cannot("write", folder.path_of(name));
  return true;
}

Result<void> share_with_group(const Folder& folder, const std::string& name) {
  const Fd fd = open_in(folder, name, O_PATH);  // and not for reading, see has_plain_file()
  if (!fd && errno == ENOENT) return {};
  if (!fd) return cannot("write", folder.path_of(name));
  if (!is_of_kind(fd.get(), S_IFREG)) return is_foreign(folder.path_of(name));
  return share(fd.get(), folder, name);
}

Result<void> create_file(const Folder& folder, const std::string& name, const std::string& content) {
  const std::string path = folder.path_of(name);
  const NewFile file = NewFile::in(folder.fd.get(), kFileMode);
  if (!file) return cannot("write", path);
  REMUDA_TRY(write_all(file.fd(), content, path));
  if (::fsync(file.fd()) != 0) return cannot("write", path);
  REMUDA_TRY(share(file.fd(), folder, name));
  if (!file.link_as(name) && errno != EEXIST) return cannot("write", path);
  return {};
}

}  // namespace remuda::pool

#include "share/mps_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"

namespace remuda::share {
namespace {

namespace fs = std::filesystem;

/// The longest path of the folder: an address also has a device's folder, "/pipe/", and the daemon's own name, with
/// some room.
constexpr size_t kLongestPath =
    sizeof(sockaddr_un::sun_path) - sizeof("/0123456789abcdef/pipe/control_privileged.....");

std::string hash(const std::string& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

bool is_own_alone(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0;
}

Result<void> check_private(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return failed(fmt::format("cannot use {}: {}", path, errno_text(errno)));
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0) return {};
  return failed(fmt::format("{} must be a folder of this user that nobody else may open; remove it", path));
}

std::string shared_root() { return fmt::format("/tmp/remuda-{}", ::geteuid()); }

std::string path_for(const std::string& pool) {
  std::string beside = fmt::format("{}/mps-{}", pool, ::geteuid());
  if (beside.size() <= kLongestPath && is_own_alone(pool)) return beside;
  return shared_root() + "/" + hash(pool);
}

}  // namespace

Result<void> make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return failed(fmt::format("cannot make the folder {}: {}", path, errno_text(errno)));
  return check_private(path);
}

Result<MpsFolder> MpsFolder::make(const std::string& pool) {
  const std::string path = path_for(pool);
  if (path.starts_with(shared_root() + "/")) REMUDA_TRY(make_private_folder(shared_root()));
  REMUDA_TRY(make_private_folder(path));
  return MpsFolder(path);
}

std::optional<MpsFolder> MpsFolder::find(const std::string& pool) {
  const std::string path = path_for(pool);
  if (path.starts_with(shared_root() + "/") && !check_private(shared_root())) return std::nullopt;
  return check_private(path) ? std::optional(MpsFolder(path)) : std::nullopt;
}

std::string device_folder_name(const std::string& id) { return hash(id); }

std::string MpsFolder::of_device(const std::string& id) const { return path_ + "/" + device_folder_name(id); }

std::vector<std::string> MpsFolder::devices() const {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error))
    folders.push_back(entry->path().string());
  return folders;
}

Result<Fd> MpsFolder::lock(double patience_s) const {
  constexpr double kPause_s = 0.02;
  const auto refuse = [&] { return failed(fmt::format("cannot lock {}: {}", path_, errno_text(errno))); };
  Fd fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Fd();
  if (!fd) return refuse();
  const double end_s = monotonic_s() + patience_s;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return refuse();
    if (monotonic_s() >= end_s)
      return failed(fmt::format("another process has been at work in {} for too long", path_));
    steady_clock().sleep_s(kPause_s);
  }
  struct stat held{}, named{};
  const bool is_there = ::fstat(fd.get(), &held) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
                        held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  return is_there ? std::move(fd) : Fd();
}

void MpsFolder::remove_if_empty() const { ::rmdir(path_.c_str()); }

}  // namespace remuda::share

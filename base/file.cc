#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/env.h"
#include "base/read_all.h"

namespace remuda {
namespace fs = std::filesystem;
namespace {

constexpr mode_t kNewFileMode = 0644;
constexpr int kMaxLinks = 40;  // as many as Linux follows
constexpr uint64_t kSyncEvery = 256 << 20;

auto unwritable(const std::string& path, int error) {
  return usage_error(fmt::format("cannot write {}: {}", path, errno_text(error)));
}

auto unwritten(const std::string& path) { return failed(fmt::format("cannot write {}: {}", path, errno_text(errno))); }

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string unused_name() {
  std::random_device random;
  return fmt::format(".remuda-{:08x}{:08x}", random(), random());
}

/// Where a write to a path ends up, once symbolic links are followed.
struct Target {
  std::string path;
  std::string folder;
  std::optional<mode_t> mode;  ///< of the file that is there now
};

/// Whether `folder`, which is open, is still the one of this name.
bool is_at(const Fd& folder, const std::string& name) {
  struct stat open{}, named{};
  return ::fstat(folder.get(), &open) == 0 && ::stat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

/// What a symbolic link says; nothing where `path` is none. One that a stranger has put where everybody may put files
/// is refused, as the kernel does where it follows links itself (fs.protected_symlinks).
Result<std::optional<fs::path>> follow(const fs::path& path) {
  constexpr size_t kLongest = 4096;
  const Fd link(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{}, folder{};
  if (!link || ::fstat(link.get(), &info) != 0 || !S_ISLNK(info.st_mode)) return std::nullopt;
  if (::stat(folder_of(path).c_str(), &folder) != 0) return unwritable(path, errno);
  if ((folder.st_mode & S_IWOTH) && info.st_uid != ::geteuid() && info.st_uid != folder.st_uid)
    return usage_error(fmt::format(
        "cannot write {}: it is another user's link, in a folder where everybody may put files", path.string()));
  std::string target(kLongest, '\0');
  const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return unwritable(path, errno);
  target.resize(static_cast<size_t>(size));
  return path.parent_path() / target;
}

/// The mode of an existing file decides, not access(), which allows root everything; and a rename does not check the
/// file.
Result<Target> find_target(const std::string& path) {
  fs::path real = path;
  for (int hops = 0; hops < kMaxLinks; ++hops) {
    REMUDA_ASSIGN(const std::optional<fs::path> next, follow(real));
    if (!next) break;
    real = *next;
  }
  Target target{real.string(), folder_of(real.string()), std::nullopt};
  struct stat info{};
  if (::stat(target.folder.c_str(), &info) != 0 && errno == ENOENT)
    return usage_error(fmt::format("cannot write {}: there is no folder {}", path, target.folder));
  if (::stat(target.path.c_str(), &info) != 0) {
    if (errno != ENOENT || path.empty()) return unwritable(path, errno);
    return target;
  }
  if (S_ISDIR(info.st_mode)) return unwritable(path, EISDIR);
  if (!S_ISREG(info.st_mode)) return usage_error(fmt::format("cannot write {}: it is not a regular file", path));
  if ((info.st_mode & 0222) == 0) return usage_error(fmt::format("cannot write {}: it is read-only", path));
  if (::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0) return unwritable(path, errno);
  target.mode = info.st_mode & 0777;
  return target;
}

struct Opened {
  Fd fd;
  mode_t mode;
};

/// Never waits: also opens a pipe that no process has open for writing.
Result<Opened> open_anything(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
  if (S_ISDIR(info.st_mode)) return usage_error(fmt::format("cannot read {}: it is a directory, not a file", path));
  return Opened{std::move(fd), info.st_mode};
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<MappedFile> MappedFile::map(int fd, std::string_view name) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return usage_error(fmt::format("cannot read {}: {}", name, errno_text(errno)));
  if (!S_ISREG(info.st_mode)) return usage_error(fmt::format("cannot read {}: it is not a regular file", name));
  MappedFile file;
  if (info.st_size == 0) return file;
  void* address = ::mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return usage_error(fmt::format("cannot map {}: {}", name, errno_text(errno)));
  file.bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(info.st_size)};
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<Fd> open_for_reading(const std::string& path) {
  REMUDA_ASSIGN(Opened file, open_anything(path));
  if (!S_ISREG(file.mode)) return usage_error(fmt::format("cannot read {}: it is not a regular file", path));
  return std::move(file.fd);
}

Result<std::string> read_text(const std::string& path, size_t limit) {
  constexpr double kPipePatience_s = 60;
  REMUDA_ASSIGN(const Opened file, open_anything(path));
  return read_all(file.fd.get(), path, limit, kPipePatience_s);
}

Result<void> write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed(fmt::format("cannot write {}: {}", name, errno_text(errno)));
    bytes.remove_prefix(done);
  }
  return {};
}

Result<void> check_kept(int fd, std::string_view name) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return failed(fmt::format("cannot write {}: {}", name, errno_text(errno)));
  return info.st_nlink > 0 ? Result<void>() : failed(fmt::format("cannot write {}: it was removed meanwhile", name));
}

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

PendingFile::PendingFile(std::string path, Fd folder, NewFile file)
    : path_(std::move(path)), folder_(std::move(folder)), file_(std::move(file)) {}

Result<PendingFile> PendingFile::create(const std::string& path) {
  REMUDA_ASSIGN(const Target target, find_target(path));
  Fd folder(::open(target.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return unwritable(path, errno);
  NewFile file = NewFile::in(folder.get(), kNewFileMode);
  if (!file) return unwritable(path, errno);
  if (target.mode) ::fchmod(file.fd(), *target.mode);
  return PendingFile(target.path, std::move(folder), std::move(file));
}

void PendingFile::bypass_cache() {
  const int flags = ::fcntl(file_.fd(), F_GETFL);
  bypasses_cache_ = flags >= 0 && ::fcntl(file_.fd(), F_SETFL, flags | O_DIRECT) == 0;
}

void PendingFile::use_cache() {
  ::fcntl(file_.fd(), F_SETFL, ::fcntl(file_.fd(), F_GETFL) & ~O_DIRECT);
  bypasses_cache_ = false;
}

/// Past the page cache; returns what is left to be written through it.
std::string_view PendingFile::append_pages(std::string_view bytes) {
  constexpr size_t kPage = 4096;  // where a disk has larger blocks, the usual way is taken
  while (bypasses_cache_) {
    const size_t pages = reinterpret_cast<uintptr_t>(bytes.data()) % kPage == 0 ? bytes.size() / kPage * kPage : 0;
    if (pages == 0) break;
    const ssize_t done = ::write(file_.fd(), bytes.data(), pages);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;  // the usual way may do, and says why it does not
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  if (bypasses_cache_ && !bytes.empty()) use_cache();
  return bytes;
}

Result<void> PendingFile::append(std::string_view bytes) {
  unsynced_ += bytes.size();  // also of what passes the cache: some file systems put that there all the same
  auto written = write_all(file_.fd(), append_pages(bytes), path_);
  if (written && unsynced_ >= kSyncEvery) {  // so that commit() does not wait long
    unsynced_ = 0;
    if (::fdatasync(file_.fd()) != 0) written = unwritten(path_);
  }
  failed_ = failed_ || !written;
  return written;
}

Result<void> PendingFile::commit() {
  REMUDA_CHECK(!committed_, "commit() is called once");
  committed_ = true;
  if (failed_) return failed(fmt::format("cannot write {}: an earlier write failed", path_));
  if (!is_at(folder_, folder_of(path_)))
    return failed(fmt::format("cannot write {}: its folder was moved or removed meanwhile", path_));
  if (::fsync(file_.fd()) != 0 || !file_.rename_to(fs::path(path_).filename())) return unwritten(path_);
  const Fd folder(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
  return {};
}

Result<void> PendingFile::commit(std::string_view content) {
  REMUDA_CHECK(!committed_, "commit() is called once");
  REMUDA_TRY(append(content));
  return commit();
}

Result<Fd> scratch_file() {
  std::string folder = env::get(env::tmpdir).value_or("");
  if (folder.empty()) folder = "/tmp";
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  std::string name = folder + "/remuda.XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return usage_error(fmt::format("cannot write a scratch file in {}: {}", folder, errno_text(errno)));
  ::unlink(name.c_str());
  return fd;
}

}  // namespace remuda

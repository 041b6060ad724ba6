#include "pool/bell.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "pool/fifo.h"
#include "pool/files.h"
#include "process/process_id.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> bells_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    paths.push_back(entry->path().string());
  return paths;
}

/// Whether the process that hung a bell, namespace.pid.start_ticks.number, is gone.
bool is_left(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto parts = split(name, '.');
  process::ProcessId owner = process::own_process_id();  // for the boot id
  if (parts.size() != 4) return false;
  const auto pid_namespace = parse_number<decltype(owner.pid_namespace)>(parts[0]);
  const auto pid = parse_number<int>(parts[1]);
  const auto start_ticks = parse_number<int64_t>(parts[2]);
  if (!pid_namespace || !pid || !start_ticks) return false;
  owner.pid_namespace = *pid_namespace;
  owner.pid = *pid;
  owner.start_ticks = *start_ticks;
  return is_visible(owner) ? !is_alive(owner) : !is_new(path) && !has_reader(path);
}

void sweep(const std::string& folder) {
  for (const std::string& path : bells_in(folder))
    if (is_left(path)) ::unlink(path.c_str());
}

/// A pipe opened for both directions needs no reader, and a write into it raises no signal.
Fd open_pipe(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (fd && (::fstat(fd.get(), &info) != 0 || !S_ISFIFO(info.st_mode))) fd.reset();
  return fd;
}

}  // namespace

Result<Bell> Bell::hang(const std::string& folder) {
  static std::atomic<int> number = 0;
  REMUDA_TRY(make_like_parent(folder));
  sweep(folder);
  const process::ProcessId self = process::own_process_id();
  std::string path = fmt::format("{}/{}.{}.{}.{}", folder, self.pid_namespace, self.pid, self.start_ticks, ++number);
  const auto refuse = [&] { return failed(fmt::format("cannot make the pipe {}: {}", path, errno_text(errno))); };
  ::unlink(path.c_str());  // left by a process of an earlier boot
  if (::mkfifo(path.c_str(), 0600) != 0) return refuse();
  Fd fd = open_pipe(path);
  if (!fd) return refuse();
  Bell bell(path, std::move(fd));
  REMUDA_TRY(share_with_group(path, folder));
  return bell;
}

void Bell::ring(const std::string& folder) {
  for (const std::string& path : bells_in(folder)) {
    const Fd fd = open_pipe(path);
    if (fd) (void)!::write(fd.get(), "!", 1);  // a full pipe rings already
  }
}

Bell::~Bell() {
  if (fd_ && owner_ == ::getpid()) ::unlink(path_.c_str());
}

void Bell::hush() {
  char rings[512];
  while (::read(fd_.get(), rings, sizeof rings) > 0) {
  }
}

}  // namespace remuda::pool

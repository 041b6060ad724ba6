#include "pool/lifeline.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "pool/fifo.h"
#include "pool/files.h"
#include "process/stat.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDraft = ".new";

std::string within(const std::string& folder) { return folder + "/lives"; }

/// Without the boot: what is left of an earlier one has no reader, and the next to be called so replaces it.
std::string path_of(const std::string& folder, const process::ProcessId& process) {
  return fmt::format("{}/{}.{}.{}", within(folder), process.pid_namespace, process.pid, process.start_ticks);
}

/// The end for writing, which can be opened only while somebody holds the other.
Fd open_end(const std::string& path) {
  return Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
}

Fd above_those_of_scripts(Fd fd) {
  constexpr int kLowest = 100;
  Fd above(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowest));
  return above ? std::move(above) : std::move(fd);
}

bool is_left(const fs::path& path) {
  return !(path.extension() == kDraft && is_new(path.string())) && !has_reader(path.string());
}

}  // namespace

Lifeline::Lifeline(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)), owner_(::getpid()) {}

/// It gets its name once it is held, so one that has its name and is not held is left over.
Result<Lifeline> Lifeline::hold(const std::string& folder, const process::ProcessId& process) {
  REMUDA_TRY(make_like_parent(within(folder)));
  const std::string path = path_of(folder, process), draft = path + kDraft;
  const auto refuse = [&] { return failed(fmt::format("cannot make the pipe {}: {}", path, errno_text(errno))); };
  ::unlink(draft.c_str());  // left by a process of an earlier boot
  if (::mkfifo(draft.c_str(), 0600) != 0) return refuse();
  Fd fd(::open(draft.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return refuse();
  REMUDA_TRY(share_with_group(draft, within(folder)));
  if (std::rename(draft.c_str(), path.c_str()) != 0) return refuse();
  return Lifeline(path, above_those_of_scripts(std::move(fd)));
}

Lifeline::~Lifeline() {
  if (fd_ && owner_ == ::getpid()) ::unlink(path_.c_str());
}

bool lives(const std::string& folder, const process::ProcessId& process) {
  if (is_visible(process)) return is_alive(process);
  return process.boot_id == process::own_process_id().boot_id && has_reader(path_of(folder, process));
}

void beat(const std::string& folder) {
  ::utimensat(AT_FDCWD, path_of(folder, process::own_process_id()).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool is_working(const std::string& folder, const process::ProcessId& process) {
  if (!lives(folder, process)) return false;
  if (is_visible(process)) {
    const auto stat = process::process_stat(process.pid);
    if (stat && (stat->state == 'T' || stat->state == 't')) return false;
  }
  struct stat info{};
  if (::lstat(path_of(folder, process).c_str(), &info) != 0) return false;
  // Where the clock was set, in either direction, nobody seems to work until each has beaten again.
  return std::abs(wall_s() - static_cast<double>(info.st_mtim.tv_sec)) < kLongestBeat_s;
}

Fd end_of(const std::string& folder, const process::ProcessId& process) {
  if (is_visible(process)) return Fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  return open_end(path_of(folder, process));
}

void sweep_lifelines(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(within(folder), error), end; !error && entry != end; entry.increment(error))
    if (is_left(entry->path())) ::unlink(entry->path().c_str());
}

}  // namespace remuda::pool

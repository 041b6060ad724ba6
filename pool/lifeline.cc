#include "pool/lifeline.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "pool/fifo.h"
#include "process/stat.h"

namespace remuda::pool {
namespace {

constexpr const char* kLives = "lives";
constexpr std::string_view kDraft = ".new";

/// Without the boot id: a pipe left from an earlier boot has no reader, and the next process with this name replaces
/// it.
std::string name_of(const process::ProcessId& process) {
  return fmt::format("{}.{}.{}", process.pid_namespace, process.pid, process.start_ticks);
}

Result<Folder> open_lives(const std::string& pool) {
  REMUDA_ASSIGN(const Folder above, open_pool_folder(pool));
  return open_folder(above, kLives);
}

Fd above_those_of_scripts(Fd fd) {
  constexpr int kLowest = 100;
  Fd above(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowest));
  return above ? std::move(above) : std::move(fd);
}

bool is_left_behind(const Folder& folder, const std::string& name) {
  return !(name.ends_with(kDraft) && is_new(folder, name)) && !has_reader(folder, name);
}

/// Whether it is stopped by a signal or a debugger; false where /proc does not show it.
bool is_stopped(const process::ProcessId& process) {
  if (!is_visible(process)) return false;
  const auto stat = process::process_stat(process.pid);
  return stat && (stat->state == 'T' || stat->state == 't');
}

}  // namespace

Lifeline::Lifeline(Folder folder, std::string name, Fd fd)
    : folder_(std::move(folder)), name_(std::move(name)), fd_(std::move(fd)), owner_(::getpid()) {}

/// The pipe gets its name only once it is held, so one that has its name and is not held is left over.
Result<Lifeline> Lifeline::hold(const std::string& folder, const process::ProcessId& process) {
  REMUDA_ASSIGN(const Folder above, open_pool_folder(folder));
  REMUDA_ASSIGN(Folder lives, make_folder_in(above, kLives));
  std::string name = name_of(process);
  const std::string draft = name + std::string(kDraft);
  REMUDA_ASSIGN(Fd fd, make_pipe(lives, draft, O_RDONLY));
  if (::renameat(lives.fd.get(), draft.c_str(), lives.fd.get(), name.c_str()) != 0)
    return failed(fmt::format("cannot make the pipe {}: {}", lives.path_of(name), errno_text(errno)));
  return Lifeline(std::move(lives), std::move(name), above_those_of_scripts(std::move(fd)));
}

Lifeline::~Lifeline() {
  if (fd_ && owner_ == ::getpid()) ::unlinkat(folder_.fd.get(), name_.c_str(), 0);
}

bool lives(const std::string& folder, const process::ProcessId& process) {
  if (is_visible(process)) return is_alive(process);
  if (process.boot_id != process::own_process_id().boot_id) return false;
  const auto lives = open_lives(folder);
  if (!lives) return ::access((folder + "/" + kLives).c_str(), F_OK) == 0;
  return has_reader(*lives, name_of(process));
}

void beat(const std::string& folder) {
  const auto lives = open_lives(folder);
  if (lives) ::utimensat(lives->fd.get(), name_of(process::own_process_id()).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool is_working(const std::string& folder, const process::ProcessId& process) {
  if (!pool::lives(folder, process) || is_stopped(process)) return false;
  const auto lives = open_lives(folder);
  struct stat info{};
  if (!lives || ::fstatat(lives->fd.get(), name_of(process).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  // After the clock was set, in either direction, a process counts as not working until its next beat.
  return std::abs(wall_s() - static_cast<double>(info.st_mtim.tv_sec)) < kLongestBeat_s;
}

Fd end_of(const std::string& folder, const process::ProcessId& process) {
  if (is_visible(process)) return Fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  const auto lives = open_lives(folder);
  if (!lives) return {};
  // The write end can be opened only while a process holds the read end.
  return Fd(::openat(lives->fd.get(), name_of(process).c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
}

bool is_in_use(const std::string& folder) {
  const auto lives = open_lives(folder);
  return lives &&
         std::ranges::any_of(names_in(*lives), [&](const std::string& name) { return has_reader(*lives, name); });
}

void sweep_lifelines(const std::string& folder) {
  const auto lives = open_lives(folder);
  if (!lives) return;
  for (const std::string& name : names_in(*lives))
    if (is_left_behind(*lives, name)) ::unlinkat(lives->fd.get(), name.c_str(), 0);
}

}  // namespace remuda::pool

#include "process/child.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::process {
namespace {

constexpr int kKillWaitMs = 2000;

Result<Fd> make_input(const std::string& text) {
  Fd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot make a child's input: {}", errno_text(errno)));
  REMUDA_TRY(write_all(fd.get(), text, "a child's input"));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

}  // namespace

Result<ChildProcess> ChildProcess::spawn(ProcessSpec spec, const std::string& input) {
  REMUDA_ASSIGN(const Fd input_fd, make_input(input));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  spec.in = input_fd.get();
  spec.out = spec.err = write_end.get();
  const auto pid = process::spawn(spec);
  if (!pid) return failed(pid.error().sentence);
  // By system call: glibc 2.36 declares its function without C linkage.
  ChildProcess process(*pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0))), std::move(read_end));
  if (!process.pidfd_) return failed(fmt::format("cannot watch {}: {}", spec.argv[0], errno_text(errno)));
  return process;
}

ChildProcess::ChildProcess(pid_t pid, Fd pidfd, Fd output)
    : pid_(pid), pidfd_(std::move(pidfd)), output_(std::move(output)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      output_(std::move(other.output_)),
      exit_(other.exit_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exit_state()) return;
  signal(SIGKILL);
  pollfd ended{pidfd_.get(), POLLIN, 0};
  ::poll(&ended, 1, kKillWaitMs);
  exit_state();
}

void ChildProcess::signal(int number) {
  if (pid_ < 0 || exit_) return;
  if (::kill(-pid_, number) != 0) ::kill(pid_, number);  // the group exists only once the child has made it
}

std::optional<ExitState> ChildProcess::exit_state() {
  int status = 0;
  if (!exit_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_)
    exit_ = WIFSIGNALED(status) ? ExitState{0, WTERMSIG(status)} : ExitState{WEXITSTATUS(status), 0};
  return exit_;
}

}  // namespace remuda::process

#include "probe/nvml/child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"

namespace remuda::probe::nvml {
namespace {

constexpr int kSocket = 3;

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
}

/// Leaves the socket, as descriptor 3, and /dev/null as 0, 1 and 2: a child that cannot die holds no one's terminal.
void close_all_but(int socket) {
  ::dup2(socket, kSocket);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kSocket; ++fd) ::dup2(nowhere, fd);
  if (::close_range(kSocket + 1, ~0U, 0) == 0) return;
  for (int fd = kSocket + 1; fd < 4096; ++fd) ::close(fd);
}

[[noreturn]] void run(int socket, pid_t parent, const std::function<void(int)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it died before it could be watched
  reset_signals();
  close_all_but(socket);
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  work(kSocket);
  ::_exit(0);
}

std::string describe(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return "was killed";
  const char* name = ::sigdescr_np(signal);
  return fmt::format("crashed (signal {}, {})", signal, name ? name : "unknown");
}

}  // namespace

Result<Child> Child::start(const std::function<void(int)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(fmt::format("no socket for a process of its own: {}", errno_text(errno)));
  Fd ours(ends[0]);
  const Fd its(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("no process of its own: {}", errno_text(errno)));
  if (pid == 0) run(its.get(), parent, work);
  return Child(pid, std::move(ours));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      heard_(std::move(other.heard_)),
      fate_(std::move(other.fate_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  std::swap(heard_, other.heard_);
  std::swap(fate_, other.fate_);
  return *this;
}

Child::Heard Child::hear(double seconds, std::string& line) {
  const double deadline_s = monotonic_s() + seconds;
  size_t searched = 0;
  for (;;) {
    if (const size_t end = heard_.find('\n', searched); end != std::string::npos) {
      line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return Heard::line;
    }
    searched = heard_.size();
    const double left_s = deadline_s - monotonic_s();
    if (left_s <= 0) return Heard::silence;
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min(left_s, 3600.0) * 1000) + 1) <= 0) continue;
    char bytes[1 << 16];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0 || heard_.size() > kLongestLine) return Heard::end;
    heard_.append(bytes, static_cast<size_t>(got));
  }
}

bool Child::tell(std::string_view bytes) {
  return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

bool Child::is_there() const {
  pollfd ask{socket_.get(), 0, 0};
  return ::poll(&ask, 1, 0) == 0;  // an end that is gone is told without being asked for
}

bool Child::reap() {
  int status = 0;
  const pid_t gone = ::waitpid(pid_, &status, WNOHANG);
  if (gone == 0 || (gone < 0 && errno == EINTR)) return false;
  pid_ = -1;
  fate_ = gone > 0 ? describe(status) : "ended";
  return true;
}

bool Child::end() {
  if (pid_ < 0) return true;
  socket_.reset();
  ::kill(pid_, SIGKILL);  // one that has ended by itself keeps its status
  const double deadline_s = monotonic_s() + kMoment;
  for (double pause_s = 50e-6; !reap(); pause_s *= 2) {
    if (monotonic_s() >= deadline_s) return false;
    steady_clock().sleep_s(pause_s);
  }
  return true;
}

}  // namespace remuda::probe::nvml

#include "process/guarded_child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"

namespace remuda::process {
namespace {

constexpr int kSocket = 3;

struct Registered {
  pid_t owner, child;
};

/// A forked process inherits the list, so each entry names the parent.
struct Registry {
  std::mutex mutex;
  std::vector<Registered> children;
};

/// Never destroyed: a child that is ended at the exit of the process is still removed from it.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

void add_to_registry(pid_t owner, pid_t child) {
  const std::lock_guard lock(registry().mutex);
  registry().children.push_back({owner, child});
}

void remove_from_registry(pid_t owner, pid_t child) {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().children, [&](const Registered& one) { return one.owner == owner && one.child == child; });
}

void set_default_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
}

/// Keeps only the socket, as descriptor 3, and /dev/null as 0, 1 and 2: a child that cannot be killed must not hold a
/// terminal.
void close_all_but_socket(int socket) {
  ::dup2(socket, kSocket);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kSocket; ++fd) ::dup2(nowhere, fd);
  if (::close_range(kSocket + 1, ~0U, 0) == 0) return;
  for (int fd = kSocket + 1; fd < 4096; ++fd) ::close(fd);
}

[[noreturn]] void work_and_exit(int socket, pid_t parent, const std::function<void(int)>& work) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it died before the death signal was set
  set_default_signals();
  close_all_but_socket(socket);
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  work(kSocket);
  ::_exit(0);
}

std::string fate_text(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return "was killed";
  const char* name = ::sigdescr_np(signal);
  return fmt::format("crashed (signal {}, {})", signal, name ? name : "unknown");
}

/// Whether its number is still its own: it runs, or its status has not been collected yet.
bool is_own_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

GuardedChild::GuardedChild(pid_t pid, Fd socket) : pid_(pid), owner_(::getpid()), socket_(std::move(socket)) {
  add_to_registry(owner_, pid_);
}

Result<GuardedChild> GuardedChild::start(const std::function<void(int)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(fmt::format("no socket for a process of its own: {}", errno_text(errno)));
  Fd ours(ends[0]);
  const Fd its(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("no process of its own: {}", errno_text(errno)));
  if (pid == 0) work_and_exit(its.get(), parent, work);
  ::setpgid(pid, pid);  // the child does the same; whichever is first, the group exists before it is killed
  return GuardedChild(pid, std::move(ours));
}

GuardedChild::GuardedChild(GuardedChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      owner_(other.owner_),
      socket_(std::move(other.socket_)),
      received_(std::move(other.received_)),
      fate_(std::move(other.fate_)) {}

GuardedChild& GuardedChild::operator=(GuardedChild&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(owner_, other.owner_);
  std::swap(socket_, other.socket_);
  std::swap(received_, other.received_);
  std::swap(fate_, other.fate_);
  return *this;
}

/// Returns `line` when something was received.
GuardedChild::Received GuardedChild::receive_some(double deadline_s) {
  for (;;) {
    const double left_s = deadline_s - monotonic_s();
    if (left_s <= 0) return Received::nothing;
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min(left_s, 3600.0) * 1000) + 1) <= 0) continue;
    char bytes[1 << 16];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0 || received_.size() > kLongestText) return Received::end;
    received_.append(bytes, static_cast<size_t>(got));
    return Received::line;
  }
}

GuardedChild::Received GuardedChild::receive(double seconds, std::string& line) {
  const double deadline_s = monotonic_s() + seconds;
  size_t searched = 0;
  for (;;) {
    if (const size_t end = received_.find('\n', searched); end != std::string::npos) {
      line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return Received::line;
    }
    searched = received_.size();
    if (const Received some = receive_some(deadline_s); some != Received::line) return some;
  }
}

GuardedChild::Received GuardedChild::receive_all(double seconds, std::string& text) {
  const double deadline_s = monotonic_s() + seconds;
  Received some = Received::line;
  while (some == Received::line) some = receive_some(deadline_s);
  if (some == Received::end) text = std::exchange(received_, {});
  return some;
}

bool GuardedChild::send(std::string_view bytes) {
  return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

bool GuardedChild::is_there() const {
  pollfd hang_up{socket_.get(), 0, 0};
  return ::poll(&hang_up, 1, 0) == 0;  // POLLHUP is reported without being requested
}

/// Where the process reaps all its children (run/job_processes.h), the status of this one may be lost.
bool GuardedChild::reap() {
  int status = 0;
  const pid_t gone = ::waitpid(pid_, &status, WNOHANG);
  if (gone == 0 || (gone < 0 && errno == EINTR)) return false;
  remove_from_registry(owner_, pid_);
  pid_ = -1;
  fate_ = gone > 0 ? fate_text(status) : "ended";
  return true;
}

bool GuardedChild::end() {
  if (pid_ < 0) return true;
  socket_.reset();
  if (owner_ != ::getpid()) return pid_ = -1, true;
  if (is_own_child(pid_)) {
    ::kill(-pid_, SIGKILL);  // also the processes that it started and left behind
    ::kill(pid_, SIGKILL);   // one that has ended by itself keeps its status
  }
  const double deadline_s = monotonic_s() + kMoment;
  for (double pause_s = 50e-6; !reap(); pause_s *= 2) {
    if (monotonic_s() >= deadline_s) return false;
    steady_clock().sleep_s(pause_s);
  }
  return true;
}

std::vector<int> guarded_children() {
  const std::lock_guard lock(registry().mutex);
  std::vector<int> pids;
  for (const Registered& one : registry().children)
    if (one.owner == ::getpid()) pids.push_back(one.child);
  return pids;
}

}  // namespace remuda::process

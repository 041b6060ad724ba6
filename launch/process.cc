#include "launch/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace remuda {
namespace {

constexpr int kKillWaitMs = 2000;

enum class Stage { group, death_signal, descriptors, cores, program };

/// What a child that could not become its program tells its parent.
struct SpawnFailure {
  Stage stage;
  int error;
};

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("cannot make a pipe: {}", errno_text(errno)));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Fd> make_input(const std::string& text) {
  Fd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd) return failed(fmt::format("cannot make a child's input: {}", errno_text(errno)));
  REMUDA_TRY(write_all(fd.get(), text, "a child's input"));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

/// By system call: glibc 2.36 declares its function without C linkage.
Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// NAME=VALUE of the caller's environment with `changes` applied.
std::vector<std::string> merged_environment(const Environment& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(changes.begin(), changes.end(), [&](const auto& change) { return change.first == name; }))
      merged.emplace_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// A cpu_set_t of any size.
class CoreSet {
 public:
  explicit CoreSet(const std::vector<int>& cores) {
    if (cores.empty()) return;
    const int count = *std::max_element(cores.begin(), cores.end()) + 1;
    bytes_ = CPU_ALLOC_SIZE(count);
    set_.reset(CPU_ALLOC(count));
    CPU_ZERO_S(bytes_, set_.get());
    for (const int core : cores) CPU_SET_S(core, bytes_, set_.get());
  }
  bool apply() const { return !set_ || ::sched_setaffinity(0, bytes_, set_.get()) == 0; }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
  size_t bytes_ = 0;
};

/// All that the child needs, made before fork: after it only async-signal-safe calls are allowed.
struct ChildPlan {
  char* const* argv;
  char* const* environment;
  const std::vector<int>& inherited;
  const CoreSet& cores;
  int input, output, failure;
  pid_t parent;
};

void reset_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGPIPE}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool arrange_descriptors(const ChildPlan& plan) {
  if (::dup2(plan.input, STDIN_FILENO) < 0) return false;
  if (::dup2(plan.output, STDOUT_FILENO) < 0 || ::dup2(plan.output, STDERR_FILENO) < 0) return false;
  for (const int fd : plan.inherited)
    if (::fcntl(fd, F_SETFD, 0) < 0) return false;
  return true;
}

[[noreturn]] void become(const ChildPlan& plan) {
  const auto require = [&](bool success, Stage stage) {
    if (success) return;
    const SpawnFailure failure{stage, errno};
    [[maybe_unused]] const ssize_t told = ::write(plan.failure, &failure, sizeof failure);
    ::_exit(127);
  };
  require(::setpgid(0, 0) == 0, Stage::group);
  require(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, Stage::death_signal);
  if (::getppid() != plan.parent) ::_exit(127);  // the parent died before the death signal was set
  reset_signals();
  require(arrange_descriptors(plan), Stage::descriptors);
  require(plan.cores.apply(), Stage::cores);
  ::execve(plan.argv[0], plan.argv, plan.environment);
  require(false, Stage::program);
  ::_exit(127);
}

std::string describe(const SpawnFailure& failure, const ProcessSpec& spec) {
  const std::string why = errno_text(failure.error);
  switch (failure.stage) {
    case Stage::program:
      return fmt::format("cannot run {}: {}", spec.argv[0], why);
    case Stage::cores:
      return fmt::format("cannot run {} on cores {}: {}", spec.argv[0], index_ranges(spec.cores), why);
    default:
      return fmt::format("cannot prepare {}: {}", spec.argv[0], why);
  }
}

/// What the child said before it became its program; nothing if it did.
std::optional<SpawnFailure> read_failure(int fd) {
  SpawnFailure failure;
  ssize_t got;
  do got = ::read(fd, &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  if (got == sizeof failure) return failure;
  return std::nullopt;
}

}  // namespace

std::string to_string(const ExitState& state) {
  if (state.signal == 0) return fmt::format("exited with status {}", state.status);
  return fmt::format("killed by signal {} ({})", state.signal, ::strsignal(state.signal));
}

Result<ChildProcess> ChildProcess::spawn(const ProcessSpec& spec) {
  REMUDA_ASSIGN(const Fd input, make_input(spec.input));
  REMUDA_ASSIGN(Pipe output, make_pipe());
  REMUDA_ASSIGN(Pipe failure, make_pipe());
  ::fcntl(output.read_end.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> arguments = spec.argv, variables = merged_environment(spec.environment);
  const std::vector<char*> argv = pointers(arguments), environment = pointers(variables);
  const CoreSet cores(spec.cores);
  const ChildPlan plan{argv.data(), environment.data(),     spec.inherited,          cores,
                       input.get(), output.write_end.get(), failure.write_end.get(), ::getpid()};

  const pid_t pid = ::fork();
  if (pid < 0) return failed(fmt::format("cannot start {}: {}", spec.argv[0], errno_text(errno)));
  if (pid == 0) become(plan);
  ChildProcess process(pid, open_pidfd(pid), std::move(output.read_end));
  failure.write_end.reset();
  if (const auto said = read_failure(failure.read_end.get())) return failed(describe(*said, spec));
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

}  // namespace remuda

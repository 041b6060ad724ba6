#include "process/spawn.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace remuda::process {
namespace {

enum class Stage { prepare, cgroup, folder, cpus, program };

struct Trouble {
  Stage stage;
  int error;
};

std::vector<std::string> environment_of(const ProcessSpec& spec) {
  const auto replaced = [&](std::string_view name) {
    return std::ranges::find(spec.unset, name) != spec.unset.end() ||
           std::ranges::any_of(spec.environment, [&](const auto& one) { return one.first == name; });
  };
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    if (!replaced(text.substr(0, text.find('=')))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : spec.environment) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// fork(), with the child started in that cgroup where the kernel supports it; then `inside` is true, otherwise the
/// child has to join(). Only system calls are allowed in the child.
struct Forked {
  pid_t pid = -1;  ///< as fork() gives it
  bool inside = false;
};

Forked fork_into(int cgroup) {
  if (cgroup >= 0) {
    clone_args how{};
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = SIGCHLD;
    how.cgroup = static_cast<uint64_t>(cgroup);
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
    if (pid >= 0) return {pid, true};
  }
  return {::fork(), cgroup < 0};
}

/// Moves the calling process into the cgroup; false, with errno, when it may not.
bool join(int cgroup) {
  const int file = ::openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  const bool joined = file >= 0 && ::write(file, "0", 1) == 1;  // 0: the process that writes it
  const int error = errno;
  if (file >= 0) ::close(file);
  errno = error;
  return joined;
}

/// The data that the child needs, prepared before the fork: after it only async-signal-safe calls are allowed.
struct Plan {
  const ProcessSpec& spec;
  const AffinityPlan& affinity;
  char* const* argv;
  char* const* environment;
  int failure;
  pid_t parent;
  bool is_in_cgroup;
};

void reset_signals(const sigset_t& mask) {
  for (const int number : {SIGPIPE, SIGTTOU, SIGTTIN}) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

[[noreturn]] void become(const Plan& plan) {
  const auto require = [&](bool success, Stage stage) {
    if (success) return;
    const Trouble trouble{stage, errno};
    [[maybe_unused]] const ssize_t told = ::write(plan.failure, &trouble, sizeof trouble);
    ::_exit(kOwnFailure);
  };
  require(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, Stage::prepare);
  if (::getppid() != plan.parent) ::_exit(kOwnFailure);  // it died before the death signal was set
  require(plan.is_in_cgroup || join(plan.spec.cgroup), Stage::cgroup);
  for (const int cgroup : plan.spec.further_cgroups) require(join(cgroup), Stage::cgroup);
  if (plan.spec.group <= 0 || ::setpgid(0, plan.spec.group) != 0) require(::setpgid(0, 0) == 0, Stage::prepare);
  require(plan.spec.in < 0 || ::dup2(plan.spec.in, STDIN_FILENO) >= 0, Stage::prepare);
  require(plan.spec.out < 0 || ::dup2(plan.spec.out, STDOUT_FILENO) >= 0, Stage::prepare);
  require(plan.spec.err < 0 || ::dup2(plan.spec.err, STDERR_FILENO) >= 0, Stage::prepare);
  for (const int fd : plan.spec.inherited) require(::fcntl(fd, F_SETFD, 0) == 0, Stage::prepare);
  require(plan.spec.folder.empty() || ::chdir(plan.spec.folder.c_str()) == 0, Stage::folder);
  require(plan.affinity.apply() || !plan.spec.must_bind, Stage::cpus);
  reset_signals(plan.spec.mask);
  ::execvpe(plan.argv[0], plan.argv, plan.environment);
  require(false, Stage::program);
  ::_exit(kOwnFailure);
}

StartFailure describe(const Trouble& trouble, const ProcessSpec& spec) {
  const std::string why = errno_text(trouble.error);
  if (trouble.stage == Stage::folder) return {kOwnFailure, fmt::format("cannot work in {}: {}", spec.folder, why)};
  if (trouble.stage == Stage::cgroup)
    return {kOwnFailure, fmt::format("cannot put {} into its cgroup: {}", spec.argv[0], why)};
  if (trouble.stage == Stage::cpus)
    return {kOwnFailure,
            fmt::format("cannot run {} on cores {}: {}", spec.argv[0], index_ranges(spec.affinity.cores), why)};
  if (trouble.stage == Stage::prepare) return {kOwnFailure, fmt::format("cannot prepare {}: {}", spec.argv[0], why)};
  if (trouble.error == ENOENT) return {kNotFound, fmt::format("there is no program {}", spec.argv[0])};
  return {kCannotExecute, fmt::format("cannot execute {}: {}", spec.argv[0], why)};
}

}  // namespace

std::string to_string(const ExitState& state) {
  if (state.signal == 0) return fmt::format("exited with status {}", state.status);
  return fmt::format("killed by signal {} ({})", state.signal, ::strsignal(state.signal));
}

tl::expected<int, StartFailure> spawn(const ProcessSpec& spec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return tl::unexpected(StartFailure{kOwnFailure, fmt::format("cannot make a pipe: {}", errno_text(errno))});
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::vector<std::string> arguments = spec.argv, entries = environment_of(spec);
  const std::vector<char*> argv = pointers(arguments), environment = pointers(entries);
  const AffinityPlan affinity(spec.affinity);
  const pid_t parent = ::getpid();
  const auto [pid, is_inside] = fork_into(spec.cgroup);
  if (pid == 0) become({spec, affinity, argv.data(), environment.data(), write_end.get(), parent, is_inside});
  if (pid < 0)
    return tl::unexpected(
        StartFailure{kOwnFailure, fmt::format("cannot start {}: {}", spec.argv[0], errno_text(errno))});
  write_end.reset();
  Trouble trouble{};
  ssize_t got;
  do got = ::read(read_end.get(), &trouble, sizeof trouble);
  while (got < 0 && errno == EINTR);
  if (got != sizeof trouble) return pid;
  ::waitpid(pid, nullptr, 0);
  return tl::unexpected(describe(trouble, spec));
}

}  // namespace remuda::process

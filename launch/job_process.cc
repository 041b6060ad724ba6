#include "launch/job_process.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/cgroup.h"

namespace remuda {
namespace {

enum class Stage { prepare, cgroup, folder, program };

struct Trouble {
  Stage stage;
  int error;
};

std::vector<std::string> environment_of(const JobProcess& process) {
  const auto replaced = [&](std::string_view name) {
    return std::ranges::find(process.unset, name) != process.unset.end() ||
           std::ranges::any_of(process.environment, [&](const auto& one) { return one.first == name; });
  };
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    if (!replaced(text.substr(0, text.find('=')))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : process.environment) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// What the child needs, made before the fork: after it only async-signal-safe calls are allowed.
struct Plan {
  const JobProcess& process;
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
  require(plan.is_in_cgroup || join(plan.process.cgroup), Stage::cgroup);
  if (plan.process.group <= 0 || ::setpgid(0, plan.process.group) != 0) require(::setpgid(0, 0) == 0, Stage::prepare);
  require(plan.process.in < 0 || ::dup2(plan.process.in, STDIN_FILENO) >= 0, Stage::prepare);
  require(plan.process.out < 0 || ::dup2(plan.process.out, STDOUT_FILENO) >= 0, Stage::prepare);
  require(plan.process.err < 0 || ::dup2(plan.process.err, STDERR_FILENO) >= 0, Stage::prepare);
  require(plan.process.lifeline < 0 || ::fcntl(plan.process.lifeline, F_SETFD, 0) == 0, Stage::prepare);
  require(plan.process.folder.empty() || ::chdir(plan.process.folder.c_str()) == 0, Stage::folder);
  plan.affinity.apply();
  reset_signals(plan.process.mask);
  ::execvpe(plan.argv[0], plan.argv, plan.environment);
  require(false, Stage::program);
  ::_exit(kOwnFailure);
}

StartFailure describe(const Trouble& trouble, const JobProcess& process) {
  const std::string why = errno_text(trouble.error);
  if (trouble.stage == Stage::folder) return {kOwnFailure, fmt::format("cannot work in {}: {}", process.folder, why)};
  if (trouble.stage == Stage::cgroup)
    return {kOwnFailure, fmt::format("cannot put {} into its cgroup: {}", process.argv[0], why)};
  if (trouble.stage == Stage::prepare) return {kOwnFailure, fmt::format("cannot prepare {}: {}", process.argv[0], why)};
  if (trouble.error == ENOENT) return {kNotFound, fmt::format("there is no program {}", process.argv[0])};
  return {kCannotExecute, fmt::format("cannot execute {}: {}", process.argv[0], why)};
}

}  // namespace

tl::expected<int, StartFailure> start(const JobProcess& process) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return tl::unexpected(StartFailure{kOwnFailure, fmt::format("cannot make a pipe: {}", errno_text(errno))});
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::vector<std::string> arguments = process.argv, entries = environment_of(process);
  const std::vector<char*> argv = pointers(arguments), environment = pointers(entries);
  const AffinityPlan affinity(process.affinity);
  const pid_t parent = ::getpid();
  const auto [pid, is_inside] = fork_into(process.cgroup);
  if (pid == 0) become({process, affinity, argv.data(), environment.data(), write_end.get(), parent, is_inside});
  if (pid < 0)
    return tl::unexpected(
        StartFailure{kOwnFailure, fmt::format("cannot start {}: {}", process.argv[0], errno_text(errno))});
  write_end.reset();
  Trouble trouble{};
  ssize_t got;
  do got = ::read(read_end.get(), &trouble, sizeof trouble);
  while (got < 0 && errno == EINTR);
  if (got != sizeof trouble) return pid;
  ::waitpid(pid, nullptr, 0);
  return tl::unexpected(describe(trouble, process));
}

}  // namespace remuda

#include "run/at_end.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "pool/stage.h"
#include "process/spawn.h"

namespace remuda::run {
namespace {

process::Environment environment_of(const pool::Job& job) {
  return {{env::ended_job.name, name_of(job)},
          {env::ended_name.name, job.name},
          {env::ended_how.name, to_string(stage_of(job))},
          {env::ended_status.name, std::to_string(exit_status_of(job))},
          {env::ended_why.name, job.why},
          {env::ended_log.name, job.log}};
}

/// Whether a child of this process ends within so many seconds.
bool ends_within(int pid, double seconds) {
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!end) return false;
  const double end_s = monotonic_s() + seconds;
  for (;;) {
    pollfd polled{end.get(), POLLIN, 0};
    const double left_s = std::max(0.0, end_s - monotonic_s());
    const int ready = ::poll(&polled, 1, static_cast<int>(left_s * 1000) + 1);
    if (ready > 0) return true;
    if (left_s <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

process::ExitState state_of(int status) {
  return WIFSIGNALED(status) ? process::ExitState{0, WTERMSIG(status)} : process::ExitState{WEXITSTATUS(status), 0};
}

}  // namespace

std::string run_at_end(pool::Access& pool, const pool::Job& asked, int64_t id, double most_s) {
  if (asked.at_end.empty()) return "";
  const auto job = pool.find(id);
  if (!job || !*job || (*job)->state != pool::JobState::ended) return "";
  const Fd no_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto pid = process::spawn({.argv = {"/bin/sh", "-c", asked.at_end},
                                   .environment = environment_of(**job),
                                   .unset = {},
                                   .folder = asked.folder,
                                   .affinity = {},
                                   .in = no_input.get(),
                                   .inherited = {}});
  if (!pid) return "--at-end: " + pid.error().sentence;
  const bool ended = ends_within(*pid, most_s);
  if (!ended) ::kill(-*pid, SIGKILL);
  int status = 0;
  ::waitpid(*pid, &status, 0);
  if (!ended) return fmt::format("--at-end: the command took longer than {:g} s, and was killed", most_s);
  const process::ExitState state = state_of(status);
  return state.ok() ? "" : "--at-end: the command " + to_string(state);
}

}  // namespace remuda::run

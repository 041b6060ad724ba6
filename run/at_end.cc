#include "run/at_end.h"

#include <algorithm>
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
#include "run/job_output.h"
#include "run/mail.h"

namespace remuda::run {
namespace {

std::string seconds(double at_s) { return at_s > 0 ? fmt::format("{:.0f}", at_s) : ""; }

process::Environment environment_of(const pool::Job& job) {
  return {{env::ended_job.name, name_of(job)},
          {env::ended_name.name, job.name},
          {env::ended_how.name, to_string(stage_of(job))},
          {env::ended_status.name, std::to_string(exit_status_of(job))},
          {env::ended_why.name, job.why},
          {env::ended_log.name, job.log},
          {env::ended_submitted.name, seconds(job.submitted_s)},
          {env::ended_started.name, seconds(job.started_s)},
          {env::ended_at.name, seconds(job.ended_s)}};
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

/// Runs a program to its end; what went wrong, as a sentence that begins with `flag` and calls it `what`.
std::string run_within(const process::ProcessSpec& process, double most_s, const char* flag, const char* what) {
  const auto pid = process::spawn(process);
  if (!pid) return fmt::format("{}: {}", flag, pid.error().sentence);
  const bool ended = ends_within(*pid, most_s);
  if (!ended) ::kill(-*pid, SIGKILL);
  int status = 0;
  ::waitpid(*pid, &status, 0);
  if (!ended) return fmt::format("{}: {} took longer than {:g} s, and was killed", flag, what, most_s);
  const process::ExitState state = state_of(status);
  return state.ok() ? "" : fmt::format("{}: {} {}", flag, what, to_string(state));
}

std::string run_command(const pool::Job& job, const RunSpec& spec, int out, double most_s) {
  const Fd no_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  process::ProcessSpec process{.argv = {"/bin/sh", "-c", spec.job.at_end},
                               .environment = environment_of(job),
                               .unset = {},
                               .folder = spec.job.folder,
                               .affinity = {}};
  process.in = no_input.get();
  process.out = process.err = out;
  return run_within(process, most_s, "--at-end", "the command");
}

std::string send_mail(const pool::Job& job, const RunSpec& spec, int out, double most_s) {
  const auto program = mail_program();
  if (!program) return program.error().message;
  const auto letter = scratch_file();
  if (!letter) return "--mail: " + letter.error().message;
  const auto written = write_all(letter->get(), end_mail(job, host_name()), "the message");
  if (!written || ::lseek(letter->get(), 0, SEEK_SET) != 0) return "--mail: the message could not be written";
  process::ProcessSpec process{.argv = {*program, "-i", spec.job.mail}};
  process.in = letter->get();
  process.out = process.err = out;
  return run_within(process, most_s, "--mail", "the program that sends it");
}

}  // namespace

std::string report_end(pool::Access& pool, const RunSpec& spec, int64_t id, double most_s) {
  if (!has_end_to_report(spec)) return "";
  const auto job = pool.find(id);
  if (!job || !*job || (*job)->state != pool::JobState::ended) return "";
  Result<Fd> log = is_array(**job) ? Fd() : open_log(spec, id);
  const int out = log ? log->get() : -1;
  std::string trouble = log ? "" : log.error().message;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) trouble += (trouble.empty() ? "" : "; ") + sentence;
  };
  if (!spec.job.at_end.empty()) add(run_command(**job, spec, out, most_s));
  if (!spec.job.mail.empty()) add(send_mail(**job, spec, out, most_s));
  return trouble;
}

}  // namespace remuda::run

#include <csignal>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <unistd.h>

#include "base/env.h"
#include "cli/jobs/cancel.h"
#include "cli/jobs/hold_export.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/request_flags.h"
#include "cli/jobs/run.h"
#include "cli/jobs/turn_flags.h"
#include "cli/subcommands.h"
#include "run/job_environment.h"

namespace remuda::cli {
namespace {

constexpr const char* kHoldFooter =
    "The shell sees the devices it was granted, and no others. They are given back when it ends, with all that was\n"
    "started in it, or with `remuda release JOB`.\n\n"
    "With --export no shell is opened: the one that runs this takes over the variables, printed as sh has them. The\n"
    "devices are given back when that shell ends, however it does, or with `remuda release` in it. Programs it "
    "started\n"
    "keep running; `remuda ps` then shows them as users without a lease. If no device is granted, eval fails with the\n"
    "same exit status.\n\n"
    "Examples:\n"
    "  remuda hold                          your shell, with one GPU\n"
    "  remuda hold -n 2                     with the two that are best joined\n"
    "  remuda hold -n 2 -- zsh              in another shell than yours\n"
    "  remuda hold --time-limit 8h          for a working day, where a policy gives less unless asked\n"
    "  eval \"$(remuda hold -n 2 --export)\"  in the shell or script that this stands in\n"
    "  eval \"$(remuda release --export)\"    and give them back before it ends\n";

struct HoldFlags {
  MachineFlags machine;
  RequestFlags request;
  TurnFlags turn;
  std::string name = "hold";
  bool exports = false;
  int shell = 0;
  const CLI::App* app = nullptr;  ///< knows the command
};

Result<int> hold(const HoldFlags& flags) {
  constexpr double kGrace_s = 5;
  run::RunSpec spec;
  REMUDA_ASSIGN(spec.job.request, make_request(flags.request));
  REMUDA_TRY(apply_turn(flags.turn, spec));
  spec.job.name = flags.name;
  REMUDA_ASSIGN(spec.job.command, job_command(*flags.app));
  if (flags.exports && !spec.job.command.empty()) return usage_error("--export starts nothing: leave the command out");
  if (flags.exports && flags.shell == 0 && ::isatty(STDOUT_FILENO) == 1)
    return usage_error("nothing would take over the variables; write eval \"$(remuda hold --export)\"");
  if (flags.exports) return hold_for_shell(std::move(spec), flags.machine, flags.shell);
  if (spec.job.command.empty()) spec.job.command = {env::get(env::shell).value_or("/bin/sh")};
  spec.stop_signal = SIGHUP;  // an interactive shell ignores SIGTERM
  spec.grace_s = kGrace_s;
  return run_job(std::move(spec), flags.machine, false, "the end of this shell gives back what it holds");
}

struct ReleaseFlags {
  MachineFlags machine;
  std::vector<int64_t> jobs;
  bool exports = false;
};

/// A job in the background or of an array is surely not held by `remuda hold`, and a mistake in a number would end it.
Result<void> check_held(const MachineFlags& machine, const std::vector<int64_t>& jobs) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  for (const int64_t id : jobs) {
    REMUDA_ASSIGN(const auto job, caretaker.pool().find(id));
    if (job && job->state != pool::JobState::ended && (job->array != 0 || !job->log.empty()))
      return usage_error(fmt::format("job {0} is not of `remuda hold`; `remuda cancel {0}` ends it", name_of(*job)));
  }
  return {};
}

Result<int> release(const ReleaseFlags& flags) {
  std::vector<int64_t> jobs = flags.jobs;
  if (jobs.empty()) {
    REMUDA_ASSIGN(const int64_t job, held_job(flags.machine));
    jobs.push_back(job);
  }
  REMUDA_TRY(check_held(flags.machine, jobs));
  Result<int> status = cancel_jobs(flags.machine, jobs);
  // What this shell held may have ended before, as by its time limit: then its variables name what others may have.
  const bool had_ended = !status && flags.jobs.empty() && status.error().kind == ErrorKind::usage;
  if (!flags.exports || (!status && !had_ended)) return status;
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  fmt::print("{}", unset_text(run::job_environment(inventory, "", jobs.front(), {})));
  return status;
}

}  // namespace

void add_hold(Program& program) {
  auto flags = std::make_shared<HoldFlags>();
  CLI::App& command = program.add("hold", "Open a shell that holds devices", [flags] { return hold(*flags); });
  flags->app = &command;
  add_job_command(command, "SHELL", "What to start in place of your shell, after --");
  command.add_option("--name", flags->name, "What to call it in `remuda ps`")->type_name("NAME");
  auto* exports = command.add_flag("--export", flags->exports, "Print variables for the shell that runs this");
  command.add_option("--for", flags->shell, "With --export: the process to hold them for, in place of that shell")
      ->type_name("PID")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->needs(exports);
  add_request_options(command, flags->request);
  add_turn_options(command, flags->turn);
  add_machine_options(command, flags->machine);
  command.footer(kHoldFooter);
}

void add_release(Program& program) {
  auto flags = std::make_shared<ReleaseFlags>();
  CLI::App& command = program.add("release", "Give back what `remuda hold` holds", [flags] { return release(*flags); });
  command.add_option("JOB", flags->jobs, "Numbers from `remuda ps`; in a shell that holds devices, its own");
  command.add_flag("--export", flags->exports, "Print what takes the variables of `remuda hold --export` back");
  add_machine_options(command, flags->machine);
  command.footer(
      "A shell that `remuda hold` opened gets SIGHUP, and SIGKILL five seconds later. One that only took over the\n"
      "variables goes on, and so does what it started.\n\n"
      "Examples:\n"
      "  remuda release 12                  what job 12 holds\n"
      "  eval \"$(remuda release --export)\"  what this shell holds, and its variables\n");
}

}  // namespace remuda::cli

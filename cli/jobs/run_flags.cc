#include "cli/jobs/run_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/moment.h"
#include "cli/jobs/pool_machine.h"
#include "process/user_name.h"
#include "run/mail.h"

namespace remuda::cli {
namespace {

Result<double> grace(const std::string& text) {
  if (text == "0") return 0;
  return duration_of("--grace", text);
}

Result<double> begin(const std::string& text) {
  if (text.empty()) return 0;
  const double now_s = wall_s();
  const auto moment = parse_moment(text, now_s, Side::future);
  if (moment && *moment >= now_s) return *moment;
  if (moment)
    return usage_error(fmt::format("--begin: '{}' has passed; without it the job starts at once", printable(text)));
  return usage_error(fmt::format("--begin: '{}' is no time; write 2h, 22:00 or '2026-11-24 08:00'", printable(text)));
}

Result<std::string> at_end(const std::string& text) {
  constexpr size_t kLongest = 4096;
  if (printable(text) == text && text.size() <= kLongest) return text;
  return usage_error(fmt::format("--at-end: write a command of one line, {} bytes at the most", kLongest));
}

/// TERM, SIGTERM or 15; nothing for anything else.
std::optional<int> parse_signal(const std::string& text) {
  constexpr std::array known{std::pair{"HUP", SIGHUP},   std::pair{"INT", SIGINT},   std::pair{"QUIT", SIGQUIT},
                             std::pair{"KILL", SIGKILL}, std::pair{"USR1", SIGUSR1}, std::pair{"USR2", SIGUSR2},
                             std::pair{"ALRM", SIGALRM}, std::pair{"TERM", SIGTERM}, std::pair{"CONT", SIGCONT}};
  std::string name = text;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const auto& [word, number] : known)
    if (name == word || name == std::to_string(number)) return number;
  return std::nullopt;
}

Result<int> signal_of(const char* flag, const std::string& text) {
  if (const auto signal = parse_signal(text)) return *signal;
  return usage_error(fmt::format("{}: there is no signal '{}'; write TERM, INT, USR1 or such", flag, printable(text)));
}

/// Puts the tasks of the file in place of the command, or into it.
Result<void> add_tasks(const RunFlags& flags, run::RunSpec& spec) {
  if (flags.tasks.empty() && flags.fail_fast) return usage_error("--fail-fast is for --tasks; --each ends so anyway");
  if (flags.tasks.empty()) return {};
  if (spec.each)
    return usage_error("--each and --tasks do not go together: one runs ranks that meet, the other single commands");
  REMUDA_ASSIGN(const std::string text, run::read_task_file(flags.tasks));
  const std::string name = flags.tasks == "-" ? "stdin" : printable(flags.tasks);
  REMUDA_ASSIGN(spec.tasks.tasks, run::parse_tasks(text, name));
  spec.tasks.command = spec.job.command;
  spec.job.command.insert(spec.job.command.begin(), {"--tasks", name});
  spec.fail_fast = flags.fail_fast;
  return {};
}

Result<void> add_array(const std::string& text, run::RunSpec& spec) {
  if (text.empty()) return {};
  if (!spec.tasks.empty())
    return usage_error(
        "--array and --tasks do not go together: one asks for devices for each index, the other keeps them");
  REMUDA_ASSIGN(spec.array, run::parse_array(text));
  return {};
}

}  // namespace

void add_job_options(CLI::App& command, RunFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    return command.add_option(name, value, meaning)->type_name(type)->group(kHowItRuns);
  };
  const auto add_flag = [&](const char* name, bool& value, const char* meaning) {
    command.add_flag(name, value, meaning)->group(kHowItRuns);
  };
  add("--name", flags.name, "NAME", "What to call the job");
  add_turn_options(command, flags);
  add("--after", flags.after, "JOB", "Start after these jobs have succeeded")->delimiter(',')->allow_extra_args(false);
  add("--after-any", flags.after_any, "JOB", "Start after these jobs have ended, however they did")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("--begin", flags.begin, "TIME", "Do not start before: 2h (from now), 22:00 (the next), '2026-11-24 08:00'");
  add("--at-end", flags.at_end, "COMMAND", "What /bin/sh does once it has ended: docs/many-jobs.md");
  add("--mail", flags.mail, "ADDRESS", "Send a message then: to ada@example.org, or to a user of this machine");
  add("--signal", flags.stop_signal, "SIGNAL", "What it gets when it is to end; TERM unless given");
  add("--checkpoint-signal", flags.checkpoint_signal, "SIGNAL",
      "By which it writes a checkpoint and goes on: for idle jobs, and where a cloud takes the machine");
  add("--grace", flags.grace, "TIME",
      "Between the stop signal and SIGKILL; 30s unless given. After half of it all its processes get the signal");
  add("--restart", flags.restarts, "N", "Start it again when it failed, at most so often")
      ->check(CLI::Range(0, 100000));
  add("--restart-on", flags.restart_on, "CODES", "Only after these exit codes")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 255));
  add("--log", flags.log, "FILE", "Append its output to a file, too");
  add_flag("-d,--detach", flags.detach, "Print its number and leave it in the background, with a log");
  add_flag("--requeue", flags.requeue, "Queue it again once SIGTERM or the time limit has ended it");
  add_flag("--preemptible", flags.preemptible, "Jobs of higher priority may stop it; it is queued again");
  add_flag("--isolate", flags.isolate, "Refuse to run where it could open devices that it is not granted");
}

void add_run_options(CLI::App& command, RunFlags& flags) {
  flags.app = &command;
  add_job_command(command, "COMMAND", "What to run, after --");
  add_request_options(command, flags.request);
  add_job_options(command, flags);
  const auto add = [&](const char* name, std::string& value, const char* type, const char* meaning) {
    command.add_option(name, value, meaning)->type_name(type)->group(kHowItRuns);
  };
  const auto add_flag = [&](const char* name, bool& value, const char* meaning) {
    command.add_flag(name, value, meaning)->group(kHowItRuns);
  };
  add_flag("--each", flags.each, "One process for each device, as torchrun starts them");
  add("--tasks", flags.tasks, "FILE", "Commands, one a line, run one at a time on each device; - is stdin");
  add_flag("--fail-fast", flags.fail_fast, "The first task that fails ends the others");
  add("--array", flags.array, "INDICES",
      "A job for each index, with a log of its own: 0-9, 1,3,5 or 0-9%2 (two at once)");
  add_flag("--with-parent", flags.with_parent, "End it when the process that started remuda has ended");
  command.add_option("--take-over", flags.takes_over, "Keep this job, which has no process: see remuda rerun")
      ->type_name("JOB")
      ->group("")  // `remuda rerun` and the agent write it
      ->check(CLI::PositiveNumber);
  add_flag("--dry-run", flags.dry_run, "Only say what it would get now");
  add_flag("-q,--quiet", flags.quiet, "Print only what goes wrong");
  add_machine_options(command, flags.machine);
}

Result<run::RunSpec> make_job_spec(const RunFlags& flags) {
  run::RunSpec spec;
  REMUDA_ASSIGN(spec.job.request, make_request(flags.request));
  REMUDA_TRY(apply_turn(flags, spec));
  REMUDA_ASSIGN(spec.grace_s, grace(flags.grace));
  spec.job.grace_s = spec.grace_s;
  REMUDA_ASSIGN(spec.stop_signal, signal_of("--signal", flags.stop_signal));
  if (!flags.checkpoint_signal.empty()) {
    REMUDA_ASSIGN(spec.checkpoint_signal, signal_of("--checkpoint-signal", flags.checkpoint_signal));
    if (spec.checkpoint_signal == SIGKILL)
      return usage_error("--checkpoint-signal: no program can handle KILL; write USR1 or another that yours handles");
  }
  spec.job.name = flags.name;
  spec.job.preemptible = flags.preemptible;
  spec.job.after = flags.after;
  spec.job.after_any = flags.after_any;
  REMUDA_ASSIGN(spec.job.begin_s, begin(flags.begin));
  REMUDA_ASSIGN(spec.job.at_end, at_end(flags.at_end));
  spec.job.mail = flags.mail;
  if (!flags.mail.empty()) REMUDA_TRY(run::check_mail(flags.mail));
  if (!flags.log.empty()) {
    spec.job.log = std::filesystem::absolute(flags.log).string();
    if (const auto folder = std::filesystem::path(spec.job.log).parent_path(); ::access(folder.c_str(), X_OK) != 0)
      return usage_error(fmt::format("--log: cannot write {}: {}", printable(spec.job.log), errno_text(errno)));
  }
  spec.each = flags.each;
  if (flags.isolate) REMUDA_TRY(require_live(flags.machine, "--isolate"));
  spec.isolate = flags.isolate;
  if (flags.with_parent && (flags.detach || !flags.array.empty()))
    return usage_error("--with-parent is for one job in the foreground: not with --detach or --array");
  spec.with_parent = flags.with_parent;
  spec.requeue = flags.requeue;
  spec.log_only = flags.detach;
  spec.takes_over = flags.takes_over;
  spec.restarts = flags.restarts;
  spec.restart_on = flags.restart_on;
  if (!flags.restart_on.empty() && flags.restarts == 0) return usage_error("--restart-on is for --restart N");
  return spec;
}

Result<run::RunSpec> make_run_spec(const RunFlags& flags) {
  REMUDA_ASSIGN(run::RunSpec spec, make_job_spec(flags));
  REMUDA_ASSIGN(spec.job.command, job_command(*flags.app));
  if (spec.job.command.empty() && flags.tasks.empty())
    return usage_error("there is nothing to run; write the command after --");
  REMUDA_TRY(add_tasks(flags, spec));
  REMUDA_TRY(add_array(flags.array, spec));
  return spec;
}

}  // namespace remuda::cli

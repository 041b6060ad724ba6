#include "cli/jobs/run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/kept_line.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/request_flags.h"
#include "cli/jobs/run_array.h"
#include "cli/jobs/run_detached.h"
#include "cli/jobs/run_tasks.h"
#include "cli/status_line.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "confine/confinement.h"
#include "confine/visibility.h"
#include "process/spawn.h"
#include "process/user_name.h"
#include "run/array_front.h"
#include "run/front.h"
#include "share/job_sharing.h"

namespace remuda::cli {
namespace {

constexpr const char* kRunExamples =
    "The job sees the devices it was granted, and no others, numbered from 0. They are free again when its last "
    "process\n"
    "is gone, those in the background too. Ctrl-C while it waits leaves the queue.\n\n"
    "--tasks keeps its devices, and runs each line of FILE on one of them: by /bin/sh, or in place of {} in the "
    "command.\n"
    "A task finds its number in REMUDA_TASK; it ends with its command, --restart is for each task, --time-limit for "
    "all.\n"
    "--array is a job for each index, which waits for devices of its own; the number of the array stands for all of "
    "them\n"
    "in --after, remuda cancel and remuda logs.\n\n"
    "Exit status: that of the command, or 128 and the number of the signal that ended it; 2: a wrong command line;\n"
    "3: this machine never has such devices; 4: not now (--no-wait, --dry-run); 125: remuda failed; 126: the command\n"
    "cannot be executed; 127: there is no such command.\n\n"
    "Examples:\n"
    "  remuda run -- python train.py                          on one GPU, when one is free\n"
    "  remuda run -n 2 --mem 24GiB -- python train.py         on the two that are best joined\n"
    "  remuda run -n 4 --each -- python ddp.py                four ranks, one per GPU, as torchrun starts them\n"
    "  remuda run -n 4 --tasks frames.txt -- render -f {}     a command for each line, one at a time on each GPU\n"
    "  remuda run --array 0-9 -- ./sweep.sh                   ten jobs, which find 0 to 9 in REMUDA_ARRAY_INDEX\n"
    "  remuda run -d -- python train.py                       in the background; see remuda logs\n"
    "  remuda run --time-limit 2h --grace 120 -- ./solver     SIGTERM after two hours, SIGKILL two minutes later\n"
    "  remuda run --restart 3 --restart-on 1,137 -- ./flaky   start it again after these exit codes\n"
    "  remuda run --preemptible --priority -5 -- ./sweep      on what nobody else wants; stopped and queued again\n"
    "  remuda run -n 8 --dry-run -- true                      whether it could start now, and on what\n";

struct RunFlags {
  MachineFlags machine;
  RequestFlags request;
  TaskFlags tasks;
  std::string array, name, time_limit, stop_signal = "TERM", grace = "30", log;
  int priority = 0, restarts = 0;
  std::vector<int64_t> after;
  std::vector<int> restart_on;
  bool no_wait = false, dry_run = false, quiet = false, each = false, detach = false;
  bool requeue = false, preemptible = false, isolate = false;
  const CLI::App* app = nullptr;  ///< knows the command
};

Result<double> duration(const char* flag, const std::string& text) {
  if (text.empty()) return 0;
  if (const auto seconds = parse_duration(text)) return *seconds;
  return usage_error(fmt::format("{}: '{}' is no time; write 90s, 15m, 2h or 1d", flag, printable(text)));
}

Result<double> grace(const std::string& text) {
  if (text == "0") return 0;
  return duration("--grace", text);
}

Result<run::RunSpec> make_spec(const RunFlags& flags) {
  run::RunSpec spec;
  REMUDA_ASSIGN(spec.job.request, make_request(flags.request));
  REMUDA_ASSIGN(spec.job.time_limit_s, duration("--time-limit", flags.time_limit));
  REMUDA_ASSIGN(spec.grace_s, grace(flags.grace));
  const auto signal = parse_signal(flags.stop_signal);
  if (!signal)
    return usage_error(
        fmt::format("--signal: there is no signal '{}'; write TERM, INT, USR1 or such", printable(flags.stop_signal)));
  spec.stop_signal = *signal;
  spec.job.name = flags.name;
  spec.job.priority = flags.priority;
  spec.job.preemptible = flags.preemptible;
  spec.job.after = flags.after;
  REMUDA_ASSIGN(spec.job.command, job_command(*flags.app));
  if (spec.job.command.empty() && flags.tasks.file.empty())
    return usage_error("there is nothing to run; write the command after --");
  if (!flags.log.empty()) spec.job.log = std::filesystem::absolute(flags.log).string();
  spec.wait = !flags.no_wait;
  spec.each = flags.each;
  if (flags.isolate) REMUDA_TRY(require_live(flags.machine, "--isolate"));
  spec.isolate = flags.isolate;
  spec.requeue = flags.requeue;
  spec.log_only = flags.detach;
  spec.restarts = flags.restarts;
  spec.restart_on = flags.restart_on;
  REMUDA_TRY(add_tasks(flags.tasks, spec));
  REMUDA_TRY(add_array(flags.array, spec));
  return spec;
}

Result<int> try_only(const run::RunSpec& spec, const MachineFlags& machine) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  REMUDA_ASSIGN(place::Answer answer,
                place::place(place::Layout(caretaker.inventory()), spec.job.request, held_now(caretaker, state)));
  if (auto* placement = std::get_if<place::Placement>(&answer)) {
    std::string sharing = share::expected_sharing(caretaker.inventory(), placement->devices, spec.job.request.share,
                                                  spec.parts_devices(), machine.file.empty());
    if (!sharing.empty()) placement->explanation.notes.push_back(std::move(sharing));
    print_fitted(explanation_text(*placement));
    if (machine.file.empty()) fmt::print("Isolation: {}\n", confine::try_confinement().sentence());
    return 0;
  }
  const place::Refusal& refusal = std::get<place::Refusal>(answer);
  fmt::print(stderr, "remuda: {}\n{}", refusal.sentence, refusal_text(refusal));
  return refusal.never ? place::kNever : place::kNotNow;
}

/// What a user sees of a job on stderr. Where the job starts at once and ends well: at a terminal its devices,
/// elsewhere nothing.
class Progress {
 public:
  Progress(bool quiet, std::string how_to_end)
      : quiet_(quiet),
        how_to_end_(std::move(how_to_end)),
        mode_(StatusLine::mode_of_stderr(quiet)),
        line_(std::make_unique<StatusLine>(mode_, STDERR_FILENO, steady_clock())) {}

  void operator()(const run::Message& message) {
    switch (message.kind) {
      case run::Message::Kind::waiting:
        waited_ = true;
        line_->update(fmt::format("job {} waits: {}", message.job, message.text), -1);
        break;
      case run::Message::Kind::started:
        print_start(message);
        clear();
        break;
      case run::Message::Kind::progress:
        if (mode_ == StatusLine::Mode::bar) line_->update(message.text, message.status / 100.0);
        break;
      case run::Message::Kind::note:
        line_->print(fmt::format("remuda: job {}: {}", message.job, message.text));
        break;
      case run::Message::Kind::ended:
        clear();
        if (!message.text.empty() && !(quiet_ && message.status == 0)) print_end(message);
        break;
    }
  }

 private:
  void print_start(const run::Message& message) {
    const std::string end = how_to_end_.empty() ? "" : "; " + how_to_end_;
    if (waited_)
      line_->print(fmt::format("remuda: job {} starts on {}{}", message.job, message.text, end));
    else if (mode_ == StatusLine::Mode::bar && !message.text.empty() && message.text != started_)
      line_->print(fmt::format("remuda: job {}: {}{}", message.job, message.text, end));
    started_ = message.text;
  }
  /// Clears the line, as the job uses the terminal from here on.
  void clear() {
    waited_ = false;
    line_ = std::make_unique<StatusLine>(mode_, STDERR_FILENO, steady_clock());
  }
  static void print_end(const run::Message& message) {
    const std::string who = message.job > 0 ? fmt::format("job {}: ", message.job) : "";
    fmt::print(stderr, "remuda: {}{}\n", who, printable(message.text));
  }

  const bool quiet_;
  const std::string how_to_end_;  ///< for people
  std::string started_;           ///< the devices that were printed last
  const StatusLine::Mode mode_;
  std::unique_ptr<StatusLine> line_;
  bool waited_ = false;
};

Result<int> run_any_front(const run::RunSpec& spec, const MachineFlags& machine, const run::Report& report) {
  const run::Look look = look_at(machine);
  return spec.array.indices.empty() ? run_front(spec, look, report) : run_array_front(spec, look, report);
}

Result<int> run(const RunFlags& flags) {
  REMUDA_ASSIGN(run::RunSpec asked, make_spec(flags));
  if (!flags.quiet) note_pool_obstacle(flags.machine);
  if (flags.dry_run) return try_only(asked, flags.machine);
  if (!flags.quiet) note_ignored_variable(asked);
  REMUDA_ASSIGN(std::vector<std::string> command, job_command(*flags.app));
  const KeptLine line = line_of(*flags.app, std::move(command));
  REMUDA_ASSIGN(run::RunSpec spec, for_caller(std::move(asked), flags.machine));
  const auto run_kept = [&](const run::Report& report) {
    return run_any_front(spec, flags.machine, keeping(line, spec.pool, report));
  };
  if (flags.detach) return run_detached(run_kept, !spec.array.indices.empty());
  spec.has_bar = StatusLine::mode_of_stderr(flags.quiet) == StatusLine::Mode::bar;
  return run_kept(job_progress(flags.quiet));
}

void add_options(CLI::App& command, RunFlags& flags) {
  const char* how = "How it runs";
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    return command.add_option(name, value, meaning)->type_name(type)->group(how);
  };
  add("--name", flags.name, "NAME", "What to call the job");
  add("--priority", flags.priority, "N", "Higher goes first")->check(CLI::Range(-1000, 1000));
  add("--time-limit", flags.time_limit, "TIME", "End it after so long: 90s, 15m, 2h");
  add("--after", flags.after, "JOB", "Start only when these have ended well")->delimiter(',')->allow_extra_args(false);
  add("--signal", flags.stop_signal, "SIGNAL", "What it gets when it is to end; TERM unless given");
  add("--grace", flags.grace, "TIME",
      "How long it has then, before SIGKILL; 30s unless given. At half of it all its processes get the signal");
  add("--restart", flags.restarts, "N", "Start it again when it failed, at most so often")
      ->check(CLI::Range(0, 100000));
  add("--restart-on", flags.restart_on, "CODES", "Only after these exit codes")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 255));
  add("--log", flags.log, "FILE", "Append its output to a file, too");
  command.add_flag("-d,--detach", flags.detach, "Print its number and leave it in the background, with a log")
      ->group(how);
  command.add_flag("--requeue", flags.requeue, "Queue it again once SIGTERM or the time limit has ended it")
      ->group(how);
  command.add_flag("--preemptible", flags.preemptible, "Jobs of higher priority may stop it; it is queued again")
      ->group(how);
  command.add_flag("--each", flags.each, "One process for each device, as torchrun starts them")->group(how);
  add_task_options(command, flags.tasks, how);
  add_array_option(command, flags.array, how);
  command.add_flag("--isolate", flags.isolate, "Refuse to run where it could open devices that it is not granted")
      ->group(how);
  command.add_flag("--no-wait", flags.no_wait, "Start now or not at all")->group(how);
  command.add_flag("--dry-run", flags.dry_run, "Only say what it would get now")->group(how);
  command.add_flag("-q,--quiet", flags.quiet, "Print only what goes wrong")->group(how);
}

}  // namespace

std::optional<int> parse_signal(const std::string& text) {
  constexpr std::array known{std::pair{"HUP", SIGHUP},   std::pair{"INT", SIGINT},   std::pair{"QUIT", SIGQUIT},
                             std::pair{"KILL", SIGKILL}, std::pair{"USR1", SIGUSR1}, std::pair{"USR2", SIGUSR2},
                             std::pair{"ALRM", SIGALRM}, std::pair{"TERM", SIGTERM}, std::pair{"CONT", SIGCONT}};
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  for (const auto& [word, number] : known)
    if (name == word || name == std::to_string(number)) return number;
  return std::nullopt;
}

void note_ignored_variable(const run::RunSpec& spec) {
  const auto visible = confine::visible_to_caller();
  if (!visible || env::get(env::job) || !spec.job.request.devices.empty()) return;
  fmt::print(stderr, "remuda: {} is ignored; use --device {}\n", printable(visible->entry),
             printable(visible->devices));
}

Result<run::RunSpec> for_caller(run::RunSpec spec, const MachineFlags& machine) {
  REMUDA_ASSIGN(spec.pool, pool::pool_folder(machine.file));
  spec.live = machine.file.empty();
  spec.job.uid = static_cast<int>(::getuid());
  spec.job.user = process::user_name(spec.job.uid);
  std::error_code error;
  spec.job.folder = std::filesystem::current_path(error).string();
  return spec;
}

run::Report job_progress(bool quiet, const std::string& how_to_end) {
  return
      [progress = std::make_shared<Progress>(quiet, how_to_end)](const run::Message& message) { (*progress)(message); };
}

Result<int> run_job(run::RunSpec spec, const MachineFlags& machine, bool quiet, const std::string& how_to_end) {
  if (!quiet) note_ignored_variable(spec);
  REMUDA_ASSIGN(run::RunSpec complete, for_caller(std::move(spec), machine));
  complete.has_bar = StatusLine::mode_of_stderr(quiet) == StatusLine::Mode::bar;
  return run_any_front(complete, machine, job_progress(quiet, how_to_end));
}

void add_run(Program& program) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command =
      program.add("run", "Run a command on the GPUs that suit it, when they are free", [flags] { return run(*flags); });
  flags->app = &command;
  add_job_command(command, "COMMAND", "What to run, after --");
  add_request_options(command, flags->request);
  add_options(command, *flags);
  add_machine_options(command, flags->machine);
  command.footer(kRunExamples);
}

}  // namespace remuda::cli

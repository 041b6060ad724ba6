#include "cli/jobs/run.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/job_progress.h"
#include "cli/jobs/kept_environment.h"
#include "cli/jobs/kept_line.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/run_flags.h"
#include "cli/status_line.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "confine/confinement.h"
#include "confine/visibility.h"
#include "pool/transitions.h"
#include "process/process_id.h"
#include "process/spawn.h"
#include "process/user_name.h"
#include "run/array_front.h"
#include "run/detach.h"
#include "run/front.h"
#include "share/job_sharing.h"
#include "wire/place.h"

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
    "3: this machine never has such devices; 4: not now (--no-wait, --dry-run); 5: the agent of this machine does not\n"
    "run; 125: remuda failed; 126: the command cannot be executed; 127: there is no such command.\n\n"
    "Examples:\n"
    "  remuda run -- python train.py                          on one GPU, when one is free\n"
    "  remuda run -n 2 --mem 24GiB -- python train.py         on the two that are best joined\n"
    "  remuda run -n 4 --each -- python ddp.py                four ranks, one per GPU, as torchrun starts them\n"
    "  remuda run -n 4 --tasks frames.txt -- render -f {}     a command for each line, one at a time on each GPU\n"
    "  remuda run --array 0-9 -- ./sweep.sh                   ten jobs, which find 0 to 9 in REMUDA_ARRAY_INDEX\n"
    "  remuda run -d -- python train.py                       in the background; see remuda logs\n"
    "  remuda run --time-limit 2h --grace 120 -- ./solver     SIGTERM after two hours, SIGKILL two minutes later\n"
    "  remuda run --cpus 8 --host-mem 64GiB -- python train.py    with cores and memory of the host for itself\n"
    "  remuda run --restart 3 --restart-on 1,137 -- ./flaky   start it again after these exit codes\n"
    "  remuda run --preemptible --priority -5 -- ./sweep      on what nobody else wants; stopped and queued again\n"
    "  remuda run -n 8 --dry-run -- true                      whether it could start now, and on what\n";

/// What would become of the job if it were submitted now, behind those that wait; the pool is not changed.
Result<pool::Job> submitted(const run::RunSpec& spec, const run::Caretaker& caretaker, pool::PoolState state) {
  const pool::Policy policy = policy_or_none(caretaker);
  const double now_s = wall_s();
  pool::Job asked = spec.job;
  asked.keeper = process::own_process_id();
  REMUDA_ASSIGN(const int64_t id, pool::submit(state, asked, caretaker.inventory(), now_s, policy));
  pool::schedule(state, caretaker.inventory(), caretaker.held_without_lease(state), policy, now_s);
  return *state.find(id);
}

bool is_never(const place::Answer& answer) {
  const auto* refusal = std::get_if<place::Refusal>(&answer);
  return refusal && refusal->never;
}

Result<int> try_only(const run::RunSpec& asked, const MachineFlags& machine) {
  REMUDA_ASSIGN(const run::RunSpec spec, for_caller(asked, machine));
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  REMUDA_TRY(Result<pool::Policy>(caretaker.policy()));  // nothing is taken into the queue while it is wrong
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  REMUDA_ASSIGN(place::Answer answer,
                place::place(place::Layout(caretaker.inventory()), spec.job.request, held_now(caretaker, state)));
  if (!is_never(answer)) {
    REMUDA_ASSIGN(const pool::Job job, submitted(spec, caretaker, state));
    const auto* free = std::get_if<place::Placement>(&answer);
    if (free && job.state != pool::JobState::running) {
      fmt::print(stderr, "remuda: not now: {}\n", job.why);
      return place::kNotNow;
    }
    if (free && job.devices != free->devices) {  // the best of all that is free is kept or reserved for others
      place::Request granted = spec.job.request;
      granted.devices = job.devices;
      REMUDA_ASSIGN(answer, place::place(place::Layout(caretaker.inventory()), granted, held_now(caretaker, state)));
    }
  }
  if (auto* placement = std::get_if<place::Placement>(&answer)) {
    std::string sharing = share::expected_sharing(caretaker.inventory(), placement->devices,
                                                  {.share = spec.job.request.share,
                                                   .parted = spec.parts_devices(),
                                                   .live = machine.file.empty(),
                                                   .may_have_daemons = caretaker.pool().may_have_daemons()});
    if (!sharing.empty()) placement->explanation.notes.push_back(std::move(sharing));
    print_fitted(explanation_text(*placement));
    if (machine.file.empty())
      fmt::print("Isolation: {}\n", caretaker.pool().is_served()
                                        ? "by the agent of this machine, for each job as it starts"
                                        : confine::try_confinement().sentence());
    return 0;
  }
  const place::Refusal& refusal = std::get<place::Refusal>(answer);
  fmt::print(stderr, "remuda: {}\n{}", refusal.sentence, refusal_text(refusal));
  return refusal.never ? place::kNever : place::kNotNow;
}

Result<int> run_any_front(const run::RunSpec& spec, const MachineFlags& machine, const run::Report& report,
                          const run::IsKept& is_kept = nullptr) {
  const run::OpenPool open = opener_of(machine);
  return spec.array.indices.empty() ? run_front(spec, open, report, is_kept) : run_array_front(spec, open, report);
}

/// Starts the job that `front` runs in the background, and prints its number; at a terminal also the command that shows
/// its output.
Result<int> run_detached(const std::function<Result<int>(const run::Report&)>& front, bool is_array) {
  REMUDA_ASSIGN(const run::Message first, detach(front));
  if (first.kind != run::Message::Kind::ended) {
    fmt::print("{}\n", first.job);
    if (::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
      fmt::print(stderr, "remuda logs {}{} shows what it writes\n", is_array ? "" : "-f ", first.job);
    return 0;
  }
  if (!first.text.empty()) fmt::print(stderr, "remuda: {}\n", first.text);
  return first.status;
}

/// Whether the job can be gone on with by `remuda rerun`, which an agent calls: it was left in the background, and all
/// of it is kept.
bool stays_without_keeper(const RunFlags& flags, const run::RunSpec& asked) {
  return flags.detach && flags.tasks != "-" && asked.wait && asked.array.indices.empty() &&
         wire::agent_socket(flags.machine.file.empty()).has_value();
}

Result<int> run(const RunFlags& flags) {
  REMUDA_ASSIGN(run::RunSpec asked, make_run_spec(flags));
  if (!flags.quiet) note_pool_obstacle(flags.machine);
  if (flags.dry_run) return try_only(asked, flags.machine);
  if (!flags.quiet) note_ignored_variable(asked);
  REMUDA_ASSIGN(std::vector<std::string> command, job_command(*flags.app));
  const KeptLine line = line_of(*flags.app, std::move(command));
  const bool outlives_keeper = stays_without_keeper(flags, asked);
  REMUDA_ASSIGN(run::RunSpec spec, for_caller(std::move(asked), flags.machine));
  spec.job.outlives_keeper = outlives_keeper;
  if (!flags.quiet) note_within_job(spec);
  const bool is_new = spec.takes_over == 0;
  const auto run_kept = [&](const run::Report& report) {
    std::function<bool(const run::Message&)> keep_line, keep_environment;
    if (is_new) keep_line = keeper_of(line, spec.pool, outlives_keeper);
    if (outlives_keeper)
      keep_environment = keeper_of(is_new ? std::optional(own_environment()) : std::nullopt, spec.pool,
                                   [&]() -> Result<std::vector<int64_t>> {
                                     REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
                                     return own_open_jobs(caretaker.pool());
                                   });
    bool is_kept = false;
    const auto keep = [&](const run::Message& message) {
      const bool has_environment = keep_environment && keep_environment(message);
      const bool has_line = keep_line && keep_line(message);
      is_kept = has_environment && has_line;
      report(message);
    };
    return run_any_front(spec, flags.machine, keep, [&] { return is_kept; });
  };
  if (flags.detach) return run_detached(run_kept, !spec.array.indices.empty());
  spec.has_bar = StatusLine::mode_of_stderr(flags.quiet) == StatusLine::Mode::bar;
  return run_kept(job_progress(flags.quiet));
}

}  // namespace

void note_ignored_variable(const run::RunSpec& spec) {
  const auto visible = confine::visible_to_caller();
  if (!visible || env::get(env::job) || !spec.job.request.devices.empty()) return;
  if (visible->devices.empty())
    fmt::print(stderr, "remuda: {}, which names no device, is ignored\n", printable(visible->entry));
  else
    fmt::print(stderr, "remuda: {} is ignored; use --device {}\n", printable(visible->entry),
               printable(visible->devices));
}

void note_within_job(const run::RunSpec& spec) {
  if (env::get(env::job_pool) != spec.pool) return;
  fmt::print(stderr, "remuda: this is within job {}, which keeps its devices: to use those, start the command itself\n",
             printable(env::get(env::job).value_or("")));
}

Result<run::RunSpec> for_caller(run::RunSpec spec, const MachineFlags& machine) {
  REMUDA_ASSIGN(const PoolPlace place, place_of_pool(machine));
  spec.pool = place.folder;
  spec.logs = place.logs;
  spec.live = machine.file.empty();
  spec.job.uid = static_cast<int>(::getuid());
  spec.job.user = process::user_name(spec.job.uid);
  spec.job.groups = process::own_groups();
  std::error_code error;
  spec.job.folder = std::filesystem::current_path(error).string();
  return spec;
}

Result<int> run_job(run::RunSpec spec, const MachineFlags& machine, bool quiet, const std::string& how_to_end) {
  if (!quiet) note_ignored_variable(spec);
  REMUDA_ASSIGN(run::RunSpec complete, for_caller(std::move(spec), machine));
  if (!quiet) note_within_job(complete);
  complete.has_bar = StatusLine::mode_of_stderr(quiet) == StatusLine::Mode::bar;
  return run_any_front(complete, machine, job_progress(quiet, how_to_end));
}

void add_run(Program& program) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command =
      program.add("run", "Run a command on the GPUs that suit it, when they are free", [flags] { return run(*flags); });
  add_run_options(command, *flags);
  command.footer(kRunExamples);
}

}  // namespace remuda::cli

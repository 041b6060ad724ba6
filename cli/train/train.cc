#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/jobs/pool_machine.h"
#include "cli/status_line.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/train/train_check.h"
#include "cli/train/train_init.h"
#include "cli/train/train_plan.h"
#include "cli/train/train_progress.h"
#include "cli/train/train_request.h"
#include "cli/train/train_speeds.h"
#include "cli/train/train_summary.h"
#include "cli/train/train_workers.h"
#include "place/place.h"
#include "workers/event.h"
#include "workers/supervisor.h"

namespace remuda::cli {
namespace {

constexpr int kSignalStatus = 128;
constexpr double kStepsToEnd = 2;  // after Ctrl-C: the current one, which may be slower than the last

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  remuda train --init data                          write data/job.toml for the files in the folder data\n"
    "  remuda train job.toml                             train as the file says\n"
    "  remuda train job.toml --devices cpu:0,cpu:1       on these devices\n"
    "  remuda train job.toml -n 4 --any-model            on four that are free, held until it ends; waits for them\n"
    "  remuda train job.toml -n 4 --dry-run              which, and what to expect of them\n"
    "  remuda run -n 4 -- remuda train job.toml          the same as -n 4\n"
    "  remuda train job.toml --set balance.policy=even   with one value changed\n"
    "  remuda train job.toml --json report.json          and keep the report\n"
    "  remuda train job.toml --machine recorded.json     rehearse: check it against a recorded machine\n"
    "A run that asks for devices, by one of the first flags above or by [placement] in the file, is a job as those of\n"
    "`remuda run`: see remuda queue, ps, logs and cancel. Within `remuda run` and `remuda hold` it uses their "
    "devices.\n\n"
    "Exit status: 0 done, 1 the run failed, 2 wrong input, 3 this machine never has such devices, 4 not now "
    "(--no-wait,\n"
    "--dry-run), 130 after Ctrl-C, 143 after SIGTERM, 129 after its terminal "
    "was\n"
    "closed; also then the report is written.\n";

/// A run that is ready to start.
struct PreparedRun : CheckedRun {
  std::optional<TrainPlan> plan;  ///< nothing for a rank that another launcher has started
  int rank = 0;                   ///< of the first of `ranks`
  workers::Listener listener;
  std::optional<PendingFile> report_file;
  Fd step_times;
  std::vector<workers::RankSpec> ranks;
};

/// The outcome of a run.
struct FinishedRun {
  workers::Outcome outcome;
  Json report;  ///< null when rank 0 sent none
};

/// An empty file to be written while the run goes on. Only a regular file, as a pipe could block a rank.
Result<Fd> create_step_times(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info) != 0)
    return usage_error(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  if (!S_ISREG(info.st_mode)) return usage_error(fmt::format("cannot write {}: it is not a regular file", path));
  if (::ftruncate(file.get(), 0) != 0) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  return file;
}

Result<PreparedRun> prepare(const TrainFlags& flags, const AskedRun& asked) {
  PreparedRun run;
  REMUDA_ASSIGN(static_cast<CheckedRun&>(run), check_run(flags, asked));
  REMUDA_TRY(check_outputs(flags, run.job.job));
  if (!flags.json.empty()) {
    REMUDA_ASSIGN(PendingFile file, PendingFile::create(flags.json));
    run.report_file.emplace(std::move(file));
  }
  if (!flags.step_times.empty()) {
    REMUDA_ASSIGN(run.step_times, create_step_times(flags.step_times));
  }
  REMUDA_ASSIGN(const std::string program, worker_program());
  const Workers workers{program, flags.transport, run.listener, run.step_times.get(), flags.job.machine.file.empty()};
  if (asked.rank) {
    run.rank = asked.rank->rank;
    REMUDA_ASSIGN(workers::RankSpec own, launched_worker(workers, run.job, run.inventory, *asked.rank, run.own));
    run.ranks.push_back(std::move(own));
    return run;
  }
  REMUDA_ASSIGN(run.listener, workers::listen_on_loopback(flags.port));
  run.plan = make_plan(run.job.job, run.inventory, known_speeds(run.job.job, run.inventory));
  REMUDA_ASSIGN(run.ranks, worker_ranks(workers, run.job, run.inventory));
  return run;
}

/// Why these devices and no others.
std::string devices_reason(const TrainFlags& flags, const AskedRun& asked) {
  if (!flags.devices.empty()) return "named with --devices";
  if (asked.lease) return fmt::format("held by job {}, in which this runs", asked.lease->job);
  if (!asked.job.devices.empty()) return "named in " + flags.file;
  if (!asked.allocated.empty()) return "allocated to this process by Slurm";
  return "all CPU devices, as none is named; -n asks for GPUs";
}

Result<int> print_plan(const CheckedRun& run, const std::string& reason) {
  const job::TrainJob& job = run.job.job;
  TrainPlan plan = make_plan(job, run.inventory, known_speeds(job, run.inventory));
  if (depends_on_libtorch(job, run.inventory)) plan.worker = worker_abilities();
  REMUDA_TRY(check_precision(job, run.inventory, plan));
  fmt::print("{} would train on {}:\n{}", job.model.name.empty() ? job.model.path : job.model.name, run.inventory.host,
             plan_text(job, run.inventory, plan, reason));
  return 0;
}

/// Checks the input of a run that asks for no devices, and prints what it would do.
Result<int> rehearse(const TrainFlags& flags, AskedRun asked) {
  asked.rank.reset();  // all devices of this host, as its ranks share them
  REMUDA_ASSIGN(const CheckedRun run, check_run(flags, asked));
  return print_plan(run, devices_reason(flags, asked));
}

/// The same for one that does: on those devices that it would be granted now.
Result<int> rehearse_request(const TrainFlags& flags, AskedRun asked, const place::Request& request) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.job.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  REMUDA_ASSIGN(place::Answer answer,
                place::place(place::Layout(caretaker.inventory()), request, held_now(caretaker, state)));
  if (const auto* refusal = std::get_if<place::Refusal>(&answer))
    return tl::unexpected(Error{refusal->never ? ErrorKind::never : ErrorKind::not_now, refusal->sentence, -1});
  const auto& placement = std::get<place::Placement>(answer);
  asked.granted = placement.explanation.devices;
  REMUDA_ASSIGN(const CheckedRun run, check_run(flags, asked));
  REMUDA_TRY(print_plan(run, "the best that are free now, as said below"));
  fmt::print("\n");
  print_fitted(explanation_text(placement));
  return 0;
}

/// A run that asks for devices: with all its input checked before it waits for them.
Result<int> train_leased(const TrainFlags& flags, const AskedRun& asked) {
  REMUDA_ASSIGN(const place::Request request, train_request(flags, asked.job.placement));
  REMUDA_TRY(check_before_lease(flags, asked, request.count));
  if (flags.job.dry_run) return rehearse_request(flags, asked, request);
  return submit(flags, asked.job.placement);
}

std::string rank_label(int rank, const job::TrainJob& job) {
  return fmt::format("rank {} {}", rank, job.devices[rank].use);
}

Result<FinishedRun> follow(PreparedRun& run, StatusLine& status) {
  const job::TrainJob& job = run.job.job;
  const int base = run.rank;
  TrainProgress progress(job);
  if (base == 0) status.print(progress.opening());
  FinishedRun finished;
  const workers::RankListener listener{
      .on_event =
          [&](int number, const Json& event) {
            const int rank = base + number;
            if (const std::string line = progress.take(rank, event); !line.empty()) status.print(line);
            if (base == 0) status.update(progress.status(status.room()), progress.done());
            if (rank == 0 && event.contains("report")) finished.report = event["report"];
          },
      .on_line = [&](int rank,
                     const std::string& line) { status.print(fmt::format("[{}] {}", rank_label(rank, job), line)); },
      .step_s = [&] { return kStepsToEnd * progress.step_s(); },
      .on_stop =
          [&](int, double within_s) {
            status.print(fmt::format(
                "stopping after the step under way, within {:.0f} s; Ctrl-C again ends the run at once", within_s));
          }};
  REMUDA_ASSIGN(finished.outcome, supervise(std::move(run.ranks), listener));
  if (finished.outcome.failure) finished.outcome.failure->rank += base;
  return finished;
}

/// The failure as one error. The rank's last lines come before it when they have not been printed yet.
tl::unexpected<Error> as_error(const workers::Failure& failure, bool output_was_shown) {
  if (!output_was_shown)
    for (const auto& line : failure.last_output)
      fmt::print(stderr, "[rank {} {}] {}\n", failure.rank, failure.device, line);
  return tl::unexpected(
      Error{failure.kind, fmt::format("rank {} ({}): {}", failure.rank, failure.device, failure.cause)});
}

/// The keys of the job with their values, as a job file has them; the devices have a list of their own.
Json keys_of(const job::TrainJob& job) {
  Json keys = Json::object();
  for (const auto& settings : {job::settings_of(job), job::files_of(job), job::outputs_of(job)})
    for (const job::Setting& setting : settings)
      if (!setting.key.starts_with("device")) keys[setting.key] = setting.value;
  return keys;
}

/// Writes the file first: a reader of stdout may be gone. With the terminal `closed`, writes only the file.
Result<void> publish(PreparedRun& run, Json report, bool closed) {
  REMUDA_ASSIGN(report, complete_report(std::move(report), run.inventory, keys_of(run.job.job)));
  if (run.plan) {
    report["predicted"] = to_json(*run.plan);
    (void)keep_speeds(report, run.job.job, run.inventory);  // the run is done, whether or not the next one is predicted
  }
  Result<void> written;
  if (run.report_file) written = run.report_file->commit(to_pretty(report));
  if (!closed) fmt::print("{}", summary_text(report));
  return written;
}

/// Writes a first job file, in place of a run.
Result<int> init(const std::string& folder) {
  REMUDA_ASSIGN(const std::string written, write_first_job(folder));
  fmt::print("{}\nTrain it with: remuda train {}\n", written, (std::filesystem::path(folder) / "job.toml").string());
  return 0;
}

Result<int> train(const TrainFlags& flags) {
  if (!flags.init.empty()) return init(flags.init);
  REMUDA_ASSIGN(AskedRun asked, read_asked(flags));
  if (asked.asks) return train_leased(flags, asked);
  const bool is_here = flags.job.machine.file.empty() || asked.lease;
  if (flags.job.dry_run || !is_here) return rehearse(flags, std::move(asked));
  REMUDA_ASSIGN(PreparedRun run, prepare(flags, asked));
  if (!run.note.empty()) fmt::print(stderr, "{}\n", run.note);
  Result<FinishedRun> finished;
  {
    StatusLine status(StatusLine::mode_of_stderr(flags.job.quiet), STDERR_FILENO, steady_clock());
    finished = follow(run, status);
  }
  if (!finished) return tl::unexpected(std::move(finished.error()));
  const workers::Outcome& outcome = finished->outcome;
  if (outcome.failure) return as_error(*outcome.failure, !flags.job.quiet);
  const bool closed = outcome.signal == SIGHUP;
  const bool reports = run.rank == 0 && (!outcome.stopped() || !finished->report.is_null());
  if (reports) REMUDA_TRY(publish(run, std::move(finished->report), closed));
  if (!outcome.stopped()) return 0;
  if (!closed) fmt::print(stderr, "stopped by signal {} ({})\n", outcome.signal, ::strsignal(outcome.signal));
  return kSignalStatus + outcome.signal;
}

}  // namespace

void add_train(Program& program) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App& command = program.add("train", "Train a model across devices", [flags] { return train(*flags); });
  command.add_option("FILE", flags->file, "The job, a TOML file");
  command.add_option("--init", flags->init,
                     "Write FOLDER/job.toml, for the data and the model that lie in this folder");
  command
      .add_option("--devices", flags->devices,
                  "Devices in place of the file's, such as gpu:0,cpu:0: without a lease, or among those of the lease")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--set", flags->settings, "KEY=VALUE in place of the file's, such as train.epochs=2")
      ->allow_extra_args(false);
  command.add_option("--json", flags->json, "Write the report of the run to this file");
  command.add_option("--step-times", flags->step_times,
                     "Write the times of each step of each device to this file, JSON lines");
  add_request_options(command, flags->job.request);
  add_job_options(command, flags->job);
  flags->job.app = &command;
  add_machine_options(command, flags->job.machine);
  command.add_option("--port", flags->port, "Port of 127.0.0.1 where the ranks connect; a free one unless given")
      ->check(CLI::Range(0, 65535));
  command.add_option("--transport", flags->transport, "How ranks exchange data")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}))
      ->capture_default_str();
  command.add_flag("--quiet", flags->job.quiet, "No progress");
  command.add_flag("--dry-run", flags->job.dry_run,
                   "Only say on which devices it would train, and what to expect of them");
  command
      .add_flag_callback(
          "--help-keys",
          [] {
            fmt::print("{}", job::job_reference());
            throw CLI::Success();
          },
          "Explain every key of the job file")
      ->trigger_on_parse();
  command.parse_complete_callback([flags] {
    if (!flags->file.empty() && !flags->init.empty())
      throw CLI::ValidationError("--init writes a new job file, and FILE is one: give one of them");
    if (flags->file.empty() && flags->init.empty())
      throw CLI::ValidationError("give the job's FILE, or --init FOLDER to have one written");
  });
  command.footer(kTrainExamples);
}

}  // namespace remuda::cli

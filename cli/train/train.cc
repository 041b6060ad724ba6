#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "cli/train/train_check.h"
#include "cli/train/train_compare.h"
#include "cli/train/train_init.h"
#include "cli/train/train_plan.h"
#include "cli/train/train_request.h"
#include "cli/train/train_run.h"
#include "cli/train/train_speeds.h"
#include "cli/train/train_summary.h"
#include "cli/train/train_workers.h"
#include "place/place.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  remuda train --init data                          write data/job.toml for the files in the folder data\n"
    "  remuda train job.toml                             train as the file says\n"
    "  remuda train job.toml --devices cpu:0,cpu:1       on these devices\n"
    "  remuda train job.toml -n 4 --any-model            on four that are free, held until it ends; waits for them\n"
    "  remuda train job.toml -n 4 --dry-run              which, and what to expect of them\n"
    "  remuda run -n 4 -- remuda train job.toml          the same as -n 4\n"
    "  remuda train job.toml --set balance.policy=even   with one value changed\n"
    "  remuda train job.toml --profile 20                what takes the time: operators, and job.trace.json to look "
    "at\n"
    "  remuda train job.toml --resume                    go on from its newest checkpoint\n"
    "  remuda train job.toml --join node1:29600          join a run under way that has elastic.join, with one device\n"
    "  remuda train job.toml --compare train.tf32=off    both ways in turns: is the difference real?\n"
    "  remuda train job.toml --json report.json          and keep the report\n"
    "  remuda train job.toml --machine recorded.json     rehearse: check it against a recorded machine\n"
    "A run that asks for devices, by one of the first flags above or by [placement] in the file, is a job as those of\n"
    "`remuda run`: see remuda queue, ps, logs and cancel. Within `remuda run` and `remuda hold` it uses their "
    "devices.\n\n"
    "Exit status: 0 done, 1 the run failed or could not write all that it was to leave, 2 wrong input, 3 this machine\n"
    "never has such devices, 4 not now (--no-wait, --dry-run), 130 after Ctrl-C, 143 after SIGTERM, 129 after its\n"
    "terminal was closed; also then the report is written.\n";

/// Why these devices and no others.
std::string devices_reason(const TrainFlags& flags, const AskedRun& asked) {
  if (!flags.devices.empty()) return "named with --devices";
  if (asked.lease) return fmt::format("held by job {}, in which this runs", asked.lease->job);
  if (!asked.job.devices.empty()) return "named in " + flags.file;
  if (!asked.allocated.empty()) return "allocated to this process by Slurm";
  return "all CPU devices, as none is named; -n asks for GPUs";
}

Result<void> print_plan(const CheckedRun& run, const std::string& reason) {
  const job::TrainJob& job = run.job.job;
  TrainPlan plan = make_plan(job, run.inventory, known_speeds(job, run.inventory), known_memory(job, run.inventory),
                             known_costs(job, run.inventory));
  if (depends_on_libtorch(job, run.inventory)) plan.worker = worker_abilities();
  REMUDA_TRY(check_precision(job, run.inventory, plan));
  fmt::print("{} would train on {}:\n{}", printable(job.model.name.empty() ? job.model.path : job.model.name),
             printable(run.inventory.host), plan_text(job, run.inventory, plan, printable(reason)));
  if (!run.note.empty()) fmt::print(stderr, "{}\n", printable(run.note));
  return {};
}

/// Checks all input, and prints what the run would do; with --compare, what A would do and what B.
Result<void> print_plans(const TrainFlags& flags, const AskedRun& asked, const std::string& reason) {
  for (const TrainFlags& way : ways_of(flags)) {
    REMUDA_ASSIGN(const CheckedRun run, check_run(way, asked));
    const bool is_b = way.settings.size() > flags.settings.size();
    if (!flags.compare.empty()) fmt::print("{}", is_b ? "\nB, as compared with A: " : "A: ");
    REMUDA_TRY(print_plan(run, reason));
  }
  return {};
}

/// For a run that asks for no devices.
Result<int> rehearse(const TrainFlags& flags, AskedRun asked) {
  asked.rank.reset();  // all devices of this host, as its ranks share them
  REMUDA_TRY(print_plans(flags, asked, devices_reason(flags, asked)));
  return 0;
}

/// For one that does: on those devices that it would be granted now.
Result<int> rehearse_request(const TrainFlags& flags, AskedRun asked, const place::Request& request) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.job.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  REMUDA_ASSIGN(place::Answer answer,
                place::place(place::Layout(caretaker.inventory()), request, held_now(caretaker, state)));
  if (const auto* refusal = std::get_if<place::Refusal>(&answer))
    return tl::unexpected(Error{refusal->never ? ErrorKind::never : ErrorKind::not_now, refusal->sentence, -1});
  const auto& placement = std::get<place::Placement>(answer);
  asked.granted = placement.explanation.devices;
  REMUDA_TRY(print_plans(flags, asked, "the best that are free now, as said below"));
  fmt::print("\n");
  print_fitted(explanation_text(placement));
  return 0;
}

/// A run that asks for devices: with all its input checked before it waits for them.
Result<int> train_leased(const TrainFlags& flags, const AskedRun& asked) {
  REMUDA_ASSIGN(const place::Request request, train_request(flags, asked.job.placement));
  for (const TrainFlags& way : ways_of(flags)) REMUDA_TRY(check_before_lease(way, asked, request.count));
  if (flags.job.dry_run) return rehearse_request(flags, asked, request);
  return submit(flags, asked.job.placement);
}

/// Writes the file first: a reader of stdout may be gone. With the terminal `closed`, writes only the file. An error:
/// not all that the run was to leave could be written.
Result<void> publish(PreparedRun& run, Json report, bool closed) {
  REMUDA_ASSIGN(report, complete(run, std::move(report)));
  const Result<void> written = run.report_file ? run.report_file->write(report) : Result<void>();
  if (!closed) fmt::print("{}", summary_text(report));
  std::string lost = lost_outputs_text(report, run.job.job);
  if (!written) lost += (lost.empty() ? "" : "; ") + written.error().message;
  return lost.empty() ? Result<void>() : failed(lost);
}

/// Writes a first job file, in place of a run.
Result<int> init(const std::string& folder) {
  REMUDA_ASSIGN(const std::string written, write_first_job(folder));
  fmt::print("{}\nTrain it with: remuda train {}\n", written, (std::filesystem::path(folder) / "job.toml").string());
  return 0;
}

/// --profile, --trace and --resume are short for keys of the job.
std::vector<std::string> short_settings(const TrainFlags& flags) {
  std::vector<std::string> settings;
  if (flags.profile > 0) settings.push_back(fmt::format("output.profile={}", flags.profile));
  if (!flags.trace.empty()) settings.push_back("output.trace=" + std::filesystem::absolute(flags.trace).string());
  if (flags.resume) settings.emplace_back("checkpoint.resume=on");
  return settings;
}

/// Where the record of a job.toml goes unless it is said: job.trace.json in the working folder.
std::string usual_trace(const std::string& job_file) {
  return std::filesystem::absolute(std::filesystem::path(job_file).stem().string() + ".trace.json").string();
}

Result<int> train(TrainFlags flags) {
  if (!flags.init.empty()) return init(flags.init);
  if (flags.job.dry_run && !flags.json.empty())
    return usage_error("--json is for the report of a run, and --dry-run makes none: leave one of them out");
  for (std::string& setting : short_settings(flags)) flags.settings.push_back(std::move(setting));
  REMUDA_ASSIGN(AskedRun asked, read_asked(flags));
  if (asked.job.output.profile > 0 && asked.job.output.trace.empty())
    flags.settings.push_back("output.trace=" + usual_trace(flags.file));
  REMUDA_TRY(check_comparison(flags, asked));
  if (asked.asks) return train_leased(flags, asked);
  const bool is_here = flags.job.machine.file.empty() || asked.lease;
  if (flags.job.dry_run || !is_here) return rehearse(flags, std::move(asked));
  if (!flags.compare.empty()) return compare(flags, asked);
  REMUDA_ASSIGN(PreparedRun run, prepare(flags, asked));
  if (!run.note.empty() && run.rank == 0) fmt::print(stderr, "{}\n", printable(run.note));
  REMUDA_ASSIGN(FinishedRun finished, follow(run, flags.job.quiet));
  const bool closed = finished.signal == SIGHUP;
  const bool reports = !finished.report.is_null() || (run.rank == 0 && !run.joins && finished.signal == 0);
  if (run.joins && finished.report.is_null() && finished.signal == 0 && !finished.stopped && !flags.job.quiet)
    fmt::print(stderr, "the run is done; its report is where its first rank was started\n");
  const std::string not_finite = workers::text_field(finished.report, "not_finite");
  if (reports) REMUDA_TRY(publish(run, std::move(finished.report), closed));
  const int status = stopped_status(finished);
  if (status == 0 && !not_finite.empty()) return failed(not_finite + "; a smaller train.learning_rate may help");
  return status;
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
  CLI::Option* const compare =
      command
          .add_option("--compare", flags->compare,
                      "KEY=VALUE: run the job as it is (A) and with this value (B) in turns, and say whether the "
                      "difference is real; several make B together")
          ->allow_extra_args(false);
  command.add_option("--repeats", flags->repeats, "How many pairs of runs --compare makes")
      ->check(CLI::Range(2, 100))
      ->needs(compare)
      ->capture_default_str();
  command.add_option("--json", flags->json, "Write the report of the run to this file");
  command
      .add_option("--profile", flags->profile,
                  "Record what each rank does in so many steps, after the first three: print its operators, and write "
                  "a trace for Perfetto and Chrome")
      ->check(CLI::Range(1, 1000));
  command.add_option("--trace", flags->trace,
                     "The file for that trace; for a job.toml it is job.trace.json in this folder unless given");
  command.add_option("--join", flags->join,
                     "HOST:PORT of a run with elastic.join, or PORT of one on this host: join it with one device, by "
                     "the same job file");
  command.add_flag("--resume", flags->resume,
                   "Go on from the newest checkpoint of the job that is whole; without one, begin");
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

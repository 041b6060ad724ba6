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
#include "cli/machine.h"
#include "cli/status_line.h"
#include "cli/subcommands.h"
#include "cli/train/train_devices.h"
#include "cli/train/train_init.h"
#include "cli/train/train_inputs.h"
#include "cli/train/train_progress.h"
#include "cli/train/train_summary.h"
#include "cli/train/train_workers.h"
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
    "  remuda train job.toml --set balance.policy=even   with one value changed\n"
    "  remuda train job.toml --json report.json          and keep the report\n"
    "  remuda train job.toml --machine recorded.json     rehearse: check it against a recorded machine\n"
    "Exit status: 0 done, 1 the run failed, 2 wrong input, 130 after Ctrl-C, 143 after SIGTERM, 129 after its terminal "
    "was\n"
    "closed; also then the report is written.\n";

struct TrainFlags {
  std::string file, init;
  std::vector<std::string> devices, settings;
  std::string json, trace;
  std::string transport = "auto";
  MachineFlags machine;
  int port = 0;
  bool quiet = false;
};

/// A run whose input was checked.
struct CheckedRun {
  job::ParsedJob job;
  Inventory inventory;
  std::string note;
};

/// A run that is ready to start.
struct PreparedRun : CheckedRun {
  workers::Listener listener;
  std::optional<PendingFile> report_file;
  Fd trace;
  std::vector<workers::RankSpec> ranks;
};

/// The outcome of a run.
struct FinishedRun {
  workers::Outcome outcome;
  Json report;  ///< null when rank 0 sent none
};

Result<CheckedRun> check(const TrainFlags& flags) {
  CheckedRun run;
  REMUDA_ASSIGN(const std::string text, read_text(flags.file));
  REMUDA_ASSIGN(const job::ParsedJob asked,
                job::parse_job(text, flags.file, {.settings = flags.settings, .devices_follow = true}));
  const auto machine = [&](const probe::ProbeOptions& options) {
    return read_machine({flags.machine.file, options.cpu_devices});
  };
  REMUDA_ASSIGN(ChosenDevices chosen,
                choose_devices({asked.job.devices, flags.devices, flags.machine.cpu_devices}, machine));
  REMUDA_ASSIGN(run.job, job::parse_job(text, flags.file, {flags.settings, chosen.devices}));
  run.inventory = std::move(chosen.inventory);
  run.note = std::move(chosen.note);
  REMUDA_TRY(check_inputs(run.job.job));
  return run;
}

/// A report in place of the job or the data would destroy them.
Result<void> check_outputs(const TrainFlags& flags, const job::TrainJob& job) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto is_same = [&](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && (fs::equivalent(a, b, error) || fs::path(a) == fs::path(b));
  };
  if (is_same(flags.json, flags.trace)) return usage_error("--json and --trace name the same file");
  for (const auto& [flag, output] : {std::pair{"--json", flags.json}, std::pair{"--trace", flags.trace}})
    for (const std::string& input :
         {flags.file, flags.machine.file, job.model.path, job.data.train.images, job.data.train.labels,
          job.data.train.tokens, job.data.test ? job.data.test->images : "", job.data.test ? job.data.test->labels : "",
          job.data.test ? job.data.test->tokens : ""})
      if (is_same(output, input))
        return usage_error(fmt::format("{} {} would replace what the run reads", flag, output));
  return {};
}

/// An empty file to be written while the run goes on. Only a regular file, as a pipe could block a rank.
Result<Fd> create_trace(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat info = {};
  if (!file || ::fstat(file.get(), &info) != 0)
    return usage_error(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  if (!S_ISREG(info.st_mode)) return usage_error(fmt::format("cannot write {}: it is not a regular file", path));
  if (::ftruncate(file.get(), 0) != 0) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  return file;
}

Result<PreparedRun> prepare(const TrainFlags& flags) {
  PreparedRun run;
  REMUDA_ASSIGN(static_cast<CheckedRun&>(run), check(flags));
  REMUDA_TRY(check_outputs(flags, run.job.job));
  if (!flags.json.empty()) {
    REMUDA_ASSIGN(PendingFile file, PendingFile::create(flags.json));
    run.report_file.emplace(std::move(file));
  }
  if (!flags.trace.empty()) {
    REMUDA_ASSIGN(run.trace, create_trace(flags.trace));
  }
  REMUDA_ASSIGN(run.listener, workers::listen_on_loopback(flags.port));
  REMUDA_ASSIGN(const std::string program, worker_program());
  REMUDA_ASSIGN(run.ranks,
                worker_ranks(program, run.job, run.inventory, run.listener, flags.transport, run.trace.get()));
  return run;
}

/// A run on a recorded machine: checks its input, and prints which devices it would use.
Result<int> rehearse(const TrainFlags& flags) {
  REMUDA_ASSIGN(const CheckedRun run, check(flags));
  fmt::print("{} would train on {}:\n", run.job.job.model.name, run.inventory.host);
  for (size_t rank = 0; rank < run.job.job.devices.size(); ++rank)
    fmt::print("  rank {}  {}\n", rank, run.job.job.devices[rank].use);
  return 0;
}

std::string rank_label(int rank, const job::TrainJob& job) {
  return fmt::format("rank {} {}", rank, job.devices[rank].use);
}

Result<FinishedRun> follow(PreparedRun& run, StatusLine& status) {
  const job::TrainJob& job = run.job.job;
  TrainProgress progress(job);
  status.print(progress.opening());
  FinishedRun finished;
  const workers::RankListener listener{
      .on_event =
          [&](int rank, const Json& event) {
            if (const std::string line = progress.take(rank, event); !line.empty()) status.print(line);
            status.update(progress.status(status.room()), progress.done());
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
  for (const auto& settings : {job::settings_of(job), job::files_of(job)})
    for (const job::Setting& setting : settings)
      if (!setting.key.starts_with("device")) keys[setting.key] = setting.value;
  return keys;
}

/// Writes the file first: a reader of stdout may be gone. With the terminal `closed`, writes only the file.
Result<void> publish(PreparedRun& run, Json report, bool closed) {
  REMUDA_ASSIGN(report, complete_report(std::move(report), run.inventory, keys_of(run.job.job)));
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
  if (!flags.machine.file.empty()) return rehearse(flags);
  REMUDA_ASSIGN(PreparedRun run, prepare(flags));
  if (!run.note.empty()) fmt::print(stderr, "{}\n", run.note);
  Result<FinishedRun> finished;
  {
    StatusLine status(StatusLine::mode_of_stderr(flags.quiet), STDERR_FILENO, steady_clock());
    finished = follow(run, status);
  }
  if (!finished) return tl::unexpected(std::move(finished.error()));
  const workers::Outcome& outcome = finished->outcome;
  if (outcome.failure) return as_error(*outcome.failure, !flags.quiet);
  const bool closed = outcome.signal == SIGHUP;
  if (!outcome.stopped() || !finished->report.is_null()) REMUDA_TRY(publish(run, std::move(finished->report), closed));
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
  command.add_option("--devices", flags->devices, "Devices in place of the file's, such as cpu:0,cpu:1")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--set", flags->settings, "KEY=VALUE in place of the file's, such as train.epochs=2")
      ->allow_extra_args(false);
  command.add_option("--json", flags->json, "Write the report of the run to this file");
  command.add_option("--trace", flags->trace, "Write the times of each step of each device to this file, JSON lines");
  add_machine_options(command, flags->machine);
  command.add_option("--port", flags->port, "Port of 127.0.0.1 where the ranks connect; a free one unless given")
      ->check(CLI::Range(0, 65535));
  command.add_option("--transport", flags->transport, "How ranks exchange data")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}))
      ->capture_default_str();
  command.add_flag("--quiet", flags->quiet, "No progress");
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
    if (flags->file.empty() == flags->init.empty())
      throw CLI::ValidationError("give the job's FILE, or --init FOLDER to have one written");
  });
  command.footer(kTrainExamples);
}

}  // namespace remuda::cli

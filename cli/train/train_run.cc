#include "cli/train/train_run.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "checkpoint/store.h"
#include "cli/status_line.h"
#include "cli/train/run_decisions.h"
#include "cli/train/run_reporter.h"
#include "cli/train/train_progress.h"
#include "cli/train/train_speeds.h"
#include "cli/train/train_summary.h"
#include "cli/train/train_workers.h"
#include "job/unwritten.h"
#include "process/spawn.h"
#include "run/run_board.h"
#include "workers/event.h"
#include "workers/supervisor.h"

namespace remuda::cli {
namespace {

constexpr double kStepsToEnd = 2;  // after Ctrl-C: the current one, which may be slower than the last

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

std::string rank_label(int rank, const std::string& device) { return fmt::format("rank {} {}", rank, device); }

/// The failure as one error. The rank's last lines come before it when they have not been printed yet.
tl::unexpected<Error> as_error(const workers::Failure& failure, bool output_was_shown) {
  if (!output_was_shown)
    for (const auto& line : failure.last_output)
      fmt::print(stderr, "[rank {} {}] {}\n", failure.rank, failure.device, line);
  return tl::unexpected(
      Error{failure.kind, fmt::format("rank {} ({}): {}", failure.rank, failure.device, failure.cause)});
}

/// Of ranks that agree among themselves: what they say when others are lost, or join, and each of them says it.
class Members {
 public:
  /// The first number of those that are started here, and how many these are; of one that joins, not known yet.
  Members(int base, size_t count, bool joins) : base_(base), count_(double(count)), knows_base_(!joins) {}

  int base() const { return base_; }
  /// Whether the first rank of the run is one of those that are started here.
  bool leads() const { return knows_base_ && base_ <= first_ && first_ < base_ + count_; }
  /// Whether the event says something new of them.
  bool take(const Json& event) {
    const std::string name = workers::text_field(event, "event");
    const double generation = workers::number_field(event, "generation");
    if ((name != "left" && name != "joined") || generation <= generation_) return false;
    generation_ = generation;
    const std::vector<double> ranks = workers::numbers_field(event, "ranks");
    if (!ranks.empty()) first_ = ranks.front();
    if (!std::exchange(knows_base_, true)) base_ = static_cast<int>(workers::number_field(event, "rank"));
    return true;
  }

 private:
  int base_;
  double count_, first_ = 0, generation_ = 0;
  bool knows_base_;
};

/// The keys of the job with their values, as a job file has them; the devices have a list of their own.
Json keys_of(const job::TrainJob& job) {
  Json keys = Json::object();
  for (const auto& settings : {job::settings_of(job), job::files_of(job), job::outputs_of(job)})
    for (const job::Setting& setting : settings)
      if (!setting.key.starts_with("device")) keys[setting.key] = setting.value;
  return keys;
}

/// Of the ranks that run here; of those that another machine has, nothing is known here.
std::vector<std::string> device_ids(const PreparedRun& run) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const size_t rank = static_cast<size_t>(run.rank) + i;
    const auto device = rank < run.job.job.devices.size() ? run.inventory.resolve(run.job.job.devices[rank].use)
                                                          : Result<const Device*>(nullptr);
    ids.push_back(device && *device ? (*device)->id : "");
  }
  return ids;
}

}  // namespace

std::string what_is_kept(const job::TrainJob& job) {
  if (job.checkpoint.folder.empty()) return "";
  const auto stored = checkpoint::stored_in(job.checkpoint.folder);
  if (!stored || stored->empty()) return "the run has kept no checkpoint of itself";
  return fmt::format("the last checkpoint of the run is that after step {}, in {}", stored->back().step,
                     printable(stored->back().folder));
}

std::string lost_outputs_text(const Json& report, const job::TrainJob& job) {
  const std::vector<job::Unwritten> all = job::unwritten_in(report);
  std::string text = job::unwritten_text(all);
  const auto lost = [&](const char* output) {
    return std::ranges::find(all, output, &job::Unwritten::output) != all.end();
  };
  if (lost("checkpoint")) text += "; " + what_is_kept(job);
  if (!lost("weights") || job.checkpoint.folder.empty()) return text;
  const auto stored = checkpoint::stored_in(job.checkpoint.folder);
  if (stored && !stored->empty() && double(stored->back().step) == workers::number_field(report, "steps"))
    text += fmt::format("; the last checkpoint has them: remuda checkpoint export {} FILE.safetensors",
                        printable(job.checkpoint.folder));
  return text;
}

Result<workers::Elasticity> elasticity_of(const job::TrainJob& job) {
  constexpr double kMargin_s = 30;  // from when they are told to, until ranks begin to meet
  int meeting_s = 60;               // ranks that meet notice no sooner that another one is lost
  if (env::get(env::connect_timeout)) {
    REMUDA_ASSIGN(meeting_s, env::get_int(env::connect_timeout, 1, 86400));
  }
  workers::Elasticity elasticity{
      .may_be_lost = std::min(job.elastic.ranks_lost, static_cast<int>(job.devices.size()) - 1),
      .notice_s = std::max(job.elastic.timeout_s, meeting_s + kMargin_s)};
  if (!job.elastic.join.empty()) {
    elasticity.may_be_lost = job.elastic.ranks_lost;
    elasticity.they_agree = true;
    return elasticity;
  }
  for (int i = 0; i < elasticity.may_be_lost; ++i) {
    REMUDA_ASSIGN(Listener meeting, listen_on_loopback(0));
    elasticity.meetings.push_back(std::move(meeting));
  }
  return elasticity;
}

Result<PreparedRun> prepare(const TrainFlags& flags, const AskedRun& asked) {
  PreparedRun run;
  REMUDA_ASSIGN(static_cast<CheckedRun&>(run), check_run(flags, asked));
  REMUDA_TRY(check_outputs(flags, run.job.job));
  REMUDA_ASSIGN(ReportFile report_file, ReportFile::create(flags.json));
  run.report_file.emplace(std::move(report_file));
  if (!flags.step_times.empty()) {
    REMUDA_ASSIGN(run.step_times, create_step_times(flags.step_times));
  }
  REMUDA_ASSIGN(const std::string program, worker_program());
  Workers workers{program, flags.transport, run.listener, run.step_times.get(), flags.job.machine.file.empty()};
  if (!asked.join.empty()) {
    run.joins = true;
    REMUDA_ASSIGN(workers::RankSpec own, joining_worker(workers, run.job, run.inventory, asked.join, run.own));
    run.ranks.push_back(std::move(own));
    return run;
  }
  if (asked.rank) {
    run.rank = asked.rank->rank;
    REMUDA_ASSIGN(workers::RankSpec own, launched_worker(workers, run.job, run.inventory, *asked.rank, run.own));
    run.ranks.push_back(std::move(own));
    return run;
  }
  REMUDA_ASSIGN(run.listener, listen_on_loopback(flags.port));
  REMUDA_ASSIGN(run.elasticity, elasticity_of(run.job.job));
  const bool changes = run.elasticity.may_be_lost > 0 || !run.job.job.elastic.join.empty();  // its ranks, under way
  if (changes && !run.job.job.checkpoint.folder.empty()) {
    REMUDA_ASSIGN(run.claim, checkpoint::Claim::take(run.job.job.checkpoint.folder));
    workers.claim_fd = run.claim->fd();
  }
  run.plan = make_plan(run.job.job, run.inventory, known_speeds(run.job.job, run.inventory),
                       known_memory(run.job.job, run.inventory), known_costs(run.job.job, run.inventory));
  REMUDA_ASSIGN(run.ranks, worker_ranks(workers, run.job, run.inventory));
  return run;
}

Result<FinishedRun> follow(PreparedRun& run, bool quiet) {
  const job::TrainJob& job = run.job.job;
  Members members(run.rank, run.ranks.size(), run.joins);
  StatusLine status(StatusLine::mode_of_stderr(quiet), STDERR_FILENO, steady_clock());
  TrainProgress progress(job);
  RunDecisions decisions;
  RunReporter reporter(run::run_board_fd(), device_ids(run), run.rank, job.checkpoint);
  if (members.leads()) status.print(progress.opening());
  FinishedRun finished;
  const workers::RankListener listener{
      .on_event =
          [&](int number, const Json& event) {
            if (members.take(event)) decisions.take_change(event);
            const int rank = members.base() + number;
            if (const std::string line = progress.take(rank, event); !line.empty()) status.print(line);
            if (members.leads()) status.update(progress.status(status.room()), progress.done());
            decisions.take(event);
            reporter.take(event, monotonic_s());
            if (event.contains("report")) finished.report = event["report"];
            if (event.contains("stopped") && event["stopped"] == Json(true)) finished.stopped = true;
          },
      .on_line =
          [&](int rank, const std::string& line) {
            const std::string& device = job.devices.at(static_cast<size_t>(run.rank + rank)).use;
            status.print(fmt::format("[{}] {}", rank_label(members.base() + rank, device), line));
          },
      .step_s = [&] { return kStepsToEnd * progress.step_s(); },
      .on_stop =
          [&](int, double within_s) {
            status.print(fmt::format(
                "stopping after the step under way, within {:.0f} s; Ctrl-C again ends the run at once", within_s));
          },
      .on_loss =
          [&](const std::vector<int>& left, const std::vector<workers::Failure>& lost) {
            decisions.take_loss();
            status.print(progress.take_loss(left, lost));
          }};
  REMUDA_ASSIGN(workers::Outcome outcome,
                supervise(std::move(run.ranks), listener, workers::Patience(), std::move(run.elasticity)));
  finished.signal = outcome.signal;
  decisions.complete(finished.report);
  if (members.leads() && finished.report.is_null() && progress.has_begun())
    if (const std::string kept = what_is_kept(job); !kept.empty())
      quiet ? fmt::print(stderr, "{}\n", kept) : status.print(kept);
  if (!outcome.failure) return finished;
  outcome.failure->rank += members.base();
  return as_error(*outcome.failure, !quiet);
}

int stopped_status(int signal) {
  if (signal == 0) return 0;
  if (signal != SIGHUP) fmt::print(stderr, "stopped by signal {} ({})\n", signal, ::strsignal(signal));
  return process::exit_code({.signal = signal});
}

int stopped_status(const FinishedRun& finished) {
  if (finished.signal != 0 || !finished.stopped) return stopped_status(finished.signal);
  fmt::print(stderr, "stopped before its end, as another rank of the run was told to stop\n");
  return process::exit_code({.signal = SIGTERM});
}

Result<Json> complete(const PreparedRun& run, Json report) {
  REMUDA_ASSIGN(report, complete_report(std::move(report), run.inventory, keys_of(run.job.job)));
  if (!run.plan) return report;
  if (report.contains("lost_ranks") || report.contains("joined_ranks")) return report;  // the plan is of others
  report["predicted"] = to_json(*run.plan);
  (void)keep_speeds(report, run.job.job, run.inventory);  // the run is done, whether or not the next one is predicted
  return report;
}

}  // namespace remuda::cli

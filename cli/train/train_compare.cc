#include "cli/train/train_compare.h"

#include <csignal>
#include <fmt/format.h>
#include <optional>

#include "cli/train/comparison.h"
#include "cli/train/report_file.h"
#include "cli/train/train_progress.h"
#include "cli/train/train_run.h"
#include "process/stop_signals.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

/// Flags of one of the runs.
TrainFlags flags_of(const TrainFlags& flags, bool is_b) {
  TrainFlags run = flags;
  if (is_b) run.settings.insert(run.settings.end(), flags.compare.begin(), flags.compare.end());
  run.compare.clear();
  run.json.clear();
  run.writes_files = false;
  return run;
}

/// What only one run at a time can be asked for; empty where there is nothing.
std::string flag_for_one_run(const TrainFlags& flags) { return flags.step_times.empty() ? "" : "--step-times"; }

Result<void> check_keys(const TrainFlags& flags) {
  for (const std::string& setting : flags.compare) {
    const std::string key = setting.substr(0, setting.find('='));
    if (key == "train.seed")
      return usage_error(
          "--compare train.seed: each pair of runs has a seed of its own, which both runs share; --set train.seed=N "
          "says the first");
    if (key.starts_with("placement"))
      return usage_error(fmt::format("--compare {}: both ways run on the same devices; compare another key", key));
  }
  return {};
}

/// Errors of values name the flag that they came by.
Error named_compare(Error error) {
  constexpr std::string_view kSet = "--set ";
  if (error.message.starts_with(kSet)) error.message.replace(0, kSet.size(), "--compare ");
  return error;
}

std::string line_of(const ComparedRun& run, size_t number, size_t count) {
  return fmt::format("run {} of {}: {}, seed {}", number, count, run.is_b ? "B" : "A", run.seed);
}

/// Makes one run; returns the signal that stopped it, or 0.
Result<int> make(ComparedRun& run, const TrainFlags& flags, const AskedRun& asked) {
  TrainFlags own = flags_of(flags, run.is_b);
  own.settings.push_back(fmt::format("train.seed={}", run.seed));
  REMUDA_ASSIGN(PreparedRun prepared, prepare(own, asked));
  REMUDA_ASSIGN(FinishedRun finished, follow(prepared, flags.job.quiet));
  if (finished.signal != 0) return finished.signal;
  REMUDA_ASSIGN(run.report, complete(prepared, std::move(finished.report)));
  return 0;
}

/// All runs, until one fails or the user stops them; returns the signal, or 0.
Result<int> make_all(Comparison& comparison, const TrainFlags& flags, const AskedRun& asked) {
  REMUDA_ASSIGN(process::StopSignals signals, process::StopSignals::hold_with_hang_up());  // also between two runs
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    ComparedRun& run = comparison.runs[i];
    if (const auto signal = signals.next()) return *signal;
    const std::string line = line_of(run, i + 1, comparison.runs.size());
    if (!flags.job.quiet) fmt::print(stderr, "{}\n", line);
    auto stopped = make(run, flags, asked);
    if (!stopped) {
      stopped.error().message = fmt::format("{}: {}", line, stopped.error().message);
      return stopped;
    }
    if (*stopped != 0) return *stopped;
    if (!flags.job.quiet)
      fmt::print(stderr, "{}: {} samples/s\n", line, rate_text(workers::number_field(run.report, "samples_per_s")));
  }
  return 0;
}

}  // namespace

std::vector<TrainFlags> ways_of(const TrainFlags& flags) {
  if (flags.compare.empty()) return {flags};
  return {flags_of(flags, false), flags_of(flags, true)};
}

Result<void> check_comparison(const TrainFlags& flags, const AskedRun& asked) {
  if (flags.compare.empty()) return {};
  if (const std::string one = flag_for_one_run(flags); !one.empty())
    return usage_error(fmt::format("{} is for one run, and --compare makes several: give one of them", one));
  if (asked.rank)
    return usage_error(fmt::format(
        "--compare starts all ranks of its runs itself, but {} has started this as rank {} of {}: start it once",
        asked.rank->launcher, asked.rank->rank, asked.rank->size));
  REMUDA_TRY(check_keys(flags));
  const auto parse = [&](bool is_b) {
    const TrainFlags way = flags_of(flags, is_b);
    return job::parse_job(asked.text, flags.file,
                          {.settings = way.settings, .devices_follow = true, .writes_files = false});
  };
  REMUDA_ASSIGN(const job::ParsedJob a, parse(false));
  REMUDA_ASSIGN(const job::ParsedJob b, parse(true).map_error(named_compare));
  if (a.job == b.job)
    return usage_error(
        fmt::format("--compare {} changes nothing: the job says so already, or it is a file, which runs that are "
                    "compared do not write",
                    flags.compare.front()));
  return {};
}

Result<int> compare(const TrainFlags& flags, const AskedRun& asked) {
  Comparison comparison{
      .job = flags.file, .settings = flags.compare, .runs = runs_of(flags.repeats, asked.job.train.seed)};
  for (const TrainFlags& way : ways_of(flags)) {
    REMUDA_ASSIGN(const CheckedRun checked, check_run(way, asked));
    REMUDA_TRY(check_outputs(flags, checked.job.job));
  }
  REMUDA_ASSIGN(ReportFile file, ReportFile::create(flags.json));
  Result<int> ended = make_all(comparison, flags, asked);
  if (!ended && comparison.runs.front().report.is_null()) return ended;  // there is nothing to show
  const int signal = ended.value_or(0);
  comparison.stopped = !ended || signal != 0;
  const Result<void> written = file.write(to_json(comparison));
  if (signal != SIGHUP) fmt::print("{}", comparison_text(comparison));
  if (!ended) return ended;
  if (!written) return tl::unexpected(written.error());
  return stopped_status(signal);
}

}  // namespace remuda::cli

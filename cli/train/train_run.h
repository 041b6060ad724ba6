// One training run: from its checked input to the end of its last worker.
#pragma once

#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/listener.h"
#include "checkpoint/store.h"
#include "cli/train/report_file.h"
#include "cli/train/train_check.h"
#include "cli/train/train_plan.h"
#include "workers/regroup.h"
#include "workers/watched_rank.h"

namespace remuda::cli {

/// A run that is ready to start: nothing is wrong with its input, and what it is to write can be written.
struct PreparedRun : CheckedRun {
  std::optional<TrainPlan> plan;  ///< nothing for a rank that another launcher has started
  int rank = 0;                   ///< of the first of `ranks`
  bool joins = false;             ///< a run, as the only one of `ranks`, and gets another number there
  Listener listener;
  workers::Elasticity elasticity;
  std::optional<checkpoint::Claim> claim;  ///< for an elastic run: its rank 0 may be lost, and not end
  std::optional<ReportFile> report_file;
  Fd step_times;
  std::vector<workers::RankSpec> ranks;
};
/// How many of its ranks the job may lose, and where the others meet each time.
Result<workers::Elasticity> elasticity_of(const job::TrainJob& job);

Result<PreparedRun> prepare(const TrainFlags& flags, const AskedRun& asked);

/// The outcome of a run whose ranks have ended without a failure.
struct FinishedRun {
  int signal = 0;        ///< by which the user stopped it here; 0: nobody did
  bool stopped = false;  ///< before its end, here or at another rank
  Json report;           ///< null when rank 0 sent none
};
/// What is left of a run that has begun and makes no report: of its state, what the newest checkpoint in its folder
/// has. A sentence; nothing where it was to keep none.
std::string what_is_kept(const job::TrainJob& job);
/// Which outputs of the run could not be written, by its report, and where its weights are all the same; empty where
/// all were.
std::string lost_outputs_text(const Json& report, const job::TrainJob& job);
/// Starts the workers, shows their progress on stderr unless `quiet`, and waits for their end. The error is the first
/// cause of a failure.
Result<FinishedRun> follow(PreparedRun& run, bool quiet);

/// Says on stderr by which signal the user stopped it, if by one; returns the exit status that it gives, 0 for none.
int stopped_status(int signal);
/// The same of a whole run, which may have been stopped at another rank: then the status is that of SIGTERM.
int stopped_status(const FinishedRun& finished);

/// Rank 0's report with what only the launcher knows. What it says of the devices' speeds predicts later runs.
Result<Json> complete(const PreparedRun& run, Json report);

}  // namespace remuda::cli

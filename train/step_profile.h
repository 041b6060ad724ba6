// StepProfile: records some steps of every rank, after the first few: what its threads do, and each operator of
// libtorch. Rank 0 gathers the records, writes the trace, and has the totals for the report.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "comm/communicator.h"
#include "job/train_job.h"
#include "profile/recorder.h"
#include "profile/trace.h"
#include "train/clock_offset.h"
#include "train/events.h"
#include "train/operator_watch.h"
#include "train/run_report.h"

namespace remuda::train {

/// Where the job asks for no profile, all of it does nothing. Made, used and destroyed on the thread of the steps,
/// before anything that starts threads: these join its recorder.
class StepProfile {
 public:
  /// Records `job.output.profile` steps after the first `skipped`, computed on `device`. Job, communicator and events
  /// outlive it.
  StepProfile(const job::TrainJob& job, comm::Communicator& communicator, const Events& events, int skipped,
              torch::Device device = torch::kCPU);

  /// An error where rank 0 cannot write the trace later.
  Result<void> open();
  /// The run begins, or goes on, after so many steps: the next ones are its first. To be called before them.
  void begin_after(int steps) { skipped_ += steps; }
  /// The run has lost ranks, and has this report of those that are left: nothing is recorded any more.
  void take(Json report);
  /// Around each step, with the number of steps before it and the engine's sums so far. Collective where recording
  /// begins and where it has ended.
  Result<void> begin_step(int steps_before, const OwnTotals& sums);
  Result<void> end_step(const OwnTotals& sums);
  /// Whether the ranks meet for the record after the step under way, the last of so many, or before the next one.
  bool meets_after(int steps) const;
  /// Collective. What is left where the run ends before all these steps were made.
  Result<void> finish();
  /// On rank 0, once it is there, finish() at the latest: docs/run-report.md says what is in it. Null where the job
  /// asks for no profile.
  const Json& report() const { return report_; }
  /// Why there is no trace; empty: there is one, or nobody asked for it.
  const std::string& why_no_trace() const { return why_no_trace_; }

 private:
  bool records(int steps_before) const;
  Result<void> begin();
  Result<void> publish();
  Json own_totals();
  Result<Json> all_totals();
  Result<bool> is_trace_wanted();
  Result<void> gather_trace();

  const job::TrainJob& job_;
  comm::Communicator& communicator_;
  const Events& events_;
  int skipped_;
  const std::optional<DeviceTimer> timer_;
  std::optional<profile::Recorder> recorder_;
  const profile::Join join_;
  std::optional<OperatorWatch> watch_;  ///< while a step is recorded
  std::optional<profile::Span> step_;
  std::optional<PendingFile> file_;  ///< of rank 0, for the trace
  ClockOffset clock_;
  double zero_s_ = 0;        ///< when recording began, on rank 0's clock
  double step_began_s_ = 0;  ///< on this rank's
  double steps_s_ = 0;
  OwnTotals before_, sums_;
  int recorded_ = 0;
  bool begun_ = false, published_ = false;
  Json report_;
  std::string why_no_trace_;
};

}  // namespace remuda::train

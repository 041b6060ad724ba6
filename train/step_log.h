// StepLog: what rank 0 keeps of each step: the file of step times, what TensorBoard shows, the history of the report.
//
// The ranks exchange their times of a step together with what they know of the next one, so these come later than its
// loss: made(), then timed(). Of the last step there are none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/unwritten.h"
#include "train/evaluate.h"
#include "train/run_history.h"
#include "train/step_times_file.h"
#include "train/tensorboard_file.h"

namespace remuda::train {

struct MadeStep {
  int step = 0;  ///< from 1
  double loss = 0, learning_rate = 0;
  std::vector<int> samples;  ///< of each rank
};

/// On other ranks than the first it writes nothing; they keep the history only where the first may be lost.
class StepLog {
 public:
  /// What the report has of it.
  struct Kept {
    RunHistory history;
    double communication_s = 0;  ///< of each step, what the rank that waited least has waited; added up
  };
  /// The job outlives it. `step_times_fd`: see StepTimesFile.
  StepLog(const job::TrainJob& job, int rank, int step_times_fd);
  /// Makes the file for TensorBoard where the job asks for one.
  Result<void> open();
  /// `alone`: what was measured of each device before training.
  void begin(const std::vector<std::vector<balance::BatchTime>>& alone);

  void made(MadeStep step);
  /// The times of the step that was made last, unless they came before.
  void timed(const StepTotals& totals);
  void evaluated(int step, const Evaluation& test);
  /// What is left of the last step.
  void finish();
  /// Files that ended before the run did, or are gone.
  std::vector<job::Unwritten> unwritten() const;

  const Kept& kept() const { return kept_; }
  /// The run has lost ranks, or others have joined it: goes on with what was kept of it before. See
  /// RunHistory::go_on().
  void go_on(Kept kept, int after_step, const std::vector<size_t>& left);

 private:
  bool is_due();
  void show(const MadeStep& step, const StepTotals* times);

  const job::TrainJob& job_;
  const bool is_first_, keeps_;
  StepTimesFile step_times_;
  std::optional<TensorBoardFile> tensorboard_;
  Kept kept_;
  std::optional<MadeStep> untimed_;
  int shown_ = 0;  ///< steps in the file for TensorBoard
  double shown_s_ = 0;
};

}  // namespace remuda::train

#include "train/step_log.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include "base/clock.h"

namespace remuda::train {
namespace {

// TensorBoard draws a thousand points of a run. These many first steps are in its file, and later ones a second apart:
// at most 35 MB a day, of two ranks.
constexpr int kShownSteps = 1000;
constexpr double kShownEvery_s = 1;

/// As tags may have it: "gpu:0 #1" becomes "gpu_0__1".
std::string tag_of(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return name;
}

}  // namespace

StepLog::StepLog(const job::TrainJob& job, int rank, int step_times_fd)
    : job_(job),
      is_first_(rank == 0),
      keeps_(is_first_ || job.elastic.ranks_lost > 0),
      step_times_(is_first_ ? step_times_fd : -1) {}

Result<void> StepLog::open() {
  if (!is_first_ || job_.output.tensorboard.empty()) return {};
  REMUDA_ASSIGN(tensorboard_, TensorBoardFile::create(job_.output.tensorboard, wall_s()));
  return {};
}

void StepLog::begin(const std::vector<std::vector<balance::BatchTime>>& alone) { step_times_.begin(job_, alone); }

void StepLog::made(MadeStep step) {
  if (keeps_) untimed_ = std::move(step);
}

void StepLog::timed(const StepTotals& totals) {
  if (!untimed_) return;
  const MadeStep step = *std::exchange(untimed_, std::nullopt);
  step_times_.add({step.step, step.samples, totals.compute_s, totals.wait_s});
  kept_.history.add(step.step, step.loss, step.samples, totals);
  kept_.communication_s += std::ranges::min(totals.wait_s);
  if (is_due()) show(step, &totals);
}

void StepLog::go_on(Kept kept, int after_step, const std::vector<size_t>& left) {
  kept_ = std::move(kept);
  kept_.history.go_on(after_step, left);
}

bool StepLog::is_due() {
  const double now_s = monotonic_s();
  if (shown_ >= kShownSteps && now_s - shown_s_ < kShownEvery_s) return false;
  ++shown_;
  shown_s_ = now_s;
  return true;
}

void StepLog::show(const MadeStep& step, const StepTotals* times) {
  if (!tensorboard_) return;
  std::vector<Scalar> scalars{{"loss", step.loss}, {"learning_rate", step.learning_rate}};
  if (times) {
    const double samples = std::accumulate(step.samples.begin(), step.samples.end(), 0.0);
    double longest_s = 0;
    const std::vector<std::string> names = job::device_names(job_);
    for (size_t rank = 0; rank < names.size(); ++rank) {
      const std::string name = tag_of(names[rank]);
      longest_s = std::max(longest_s, times->compute_s[rank] + times->wait_s[rank]);
      scalars.push_back({"share/" + name, samples > 0 ? step.samples[rank] / samples : 0});
      scalars.push_back({"compute_s/" + name, times->compute_s[rank]});
      scalars.push_back({"data_wait_s/" + name, times->data_s[rank]});
      scalars.push_back({"wait_s/" + name, times->wait_s[rank]});
      if (times->memory_bytes[rank] > 0) scalars.push_back({"memory_bytes/" + name, times->memory_bytes[rank]});
    }
    if (longest_s > 0) scalars.push_back({"samples_per_s", samples / longest_s});
  }
  tensorboard_->add(step.step, wall_s(), scalars);
}

void StepLog::evaluated(int step, const Evaluation& test) {
  if (!tensorboard_) return;
  tensorboard_->add(step, wall_s(), std::vector<Scalar>{{"test_loss", test.loss}, {"test_accuracy", test.accuracy}});
}

void StepLog::finish() {
  if (untimed_) show(*std::exchange(untimed_, std::nullopt), nullptr);
}

std::vector<job::Unwritten> StepLog::unwritten() const {
  std::vector<job::Unwritten> all;
  if (const std::string why = step_times_.why_ended(); !why.empty()) all.push_back({"step_times", why});
  if (const std::string why = tensorboard_ ? tensorboard_->why_ended() : ""; !why.empty())
    all.push_back(job::unwritten("tensorboard", why, job_.output.tensorboard));
  return all;
}

}  // namespace remuda::train

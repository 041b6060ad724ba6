#include "train/alone.h"

#include <algorithm>
#include <cmath>

#include "measure/repeat.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr int kWarmUps = 2;
constexpr int kRepeats = 5;

double median_of_trials(int batch, const std::function<double(int)>& trial) {
  std::vector<double> seconds;
  for (int i = 0; i < kWarmUps + kRepeats; ++i) {
    const double took = trial(batch);
    if (!std::isfinite(took)) return took;
    if (i >= kWarmUps) seconds.push_back(took);
  }
  return measure::median(std::move(seconds));
}

}  // namespace

std::vector<int> trial_batches(int global_batch) {
  return {global_batch, std::max(1, global_batch / 2), std::max(1, global_batch / 4)};
}

Result<std::vector<std::vector<balance::BatchTime>>> measure_alone(
    comm::Communicator& communicator, int global_batch, const std::function<double(int)>& trial,
    const std::function<void(std::vector<balance::BatchTime>)>& measured) {
  const auto sizes = trial_batches(global_batch);
  std::vector<balance::BatchTime> mine;
  for (int turn = 0; turn < communicator.size(); ++turn) {
    REMUDA_TRY(communicator.barrier(label::kAloneTurn));
    if (turn != communicator.rank()) continue;
    for (const int batch : sizes) mine.push_back({batch, median_of_trials(batch, trial)});
    measured(mine);
  }
  REMUDA_TRY(communicator.barrier(label::kAloneTurn));
  std::vector<balance::BatchTime> all(sizes.size() * communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                                     label::kAloneTimes));
  std::vector<std::vector<balance::BatchTime>> by_rank;
  for (size_t begin = 0; begin < all.size(); begin += sizes.size())
    by_rank.emplace_back(all.begin() + begin, all.begin() + begin + sizes.size());
  return by_rank;
}

double alone_samples_per_s(const std::vector<balance::BatchTime>& times) {
  for (const auto& time : times)
    if (std::isfinite(time.seconds)) return time.batch / time.seconds;
  return 0;
}

}  // namespace remuda::train

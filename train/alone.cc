#include "train/alone.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "measure/repeat.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

using balance::BatchTime;

constexpr int kWarmUps = 2;
constexpr int kTrials = kWarmUps + 5;  // of each size
constexpr int kGrowth = 4;             // from one small batch to the next, on the way to the sizes to measure
constexpr size_t kSizes = 3;

/// All trials of one batch size.
struct Size {
  int batch = 0;
  std::vector<double> seconds;

  double last() const { return seconds.back(); }
  /// The median, without the warm-ups where there are trials beside them.
  BatchTime time() const {
    const auto warm_ups = std::min<size_t>(kWarmUps, seconds.size() - 1);
    return {batch, measure::median({seconds.begin() + static_cast<long>(warm_ups), seconds.end()})};
  }
};

/// One device's trials, within a time limit.
class DeviceTrials {
 public:
  DeviceTrials(const AloneWork& work, const std::function<Result<bool>(double)>& sign) : work_(work), sign_(sign) {}

  /// One trial of each batch, smallest first: the larger ones are only tried when they can be expected to end in time.
  Result<void> climb(const std::vector<int>& batches) {
    for (const int batch : batches) {
      const bool first = sizes_.empty();
      if (!going_on_ || (!first && !fits(sizes_.back().last() * batch / sizes_.back().batch))) return {};
      sizes_.push_back({batch, {}});
      REMUDA_TRY(run(sizes_.back()));
    }
    return {};
  }

  /// More trials of the sizes tried so far, in turns, so that a disturbance does not affect only one size.
  Result<void> repeat(int smallest) {
    for (int trial = 1; trial < kTrials; ++trial)
      for (Size& size : sizes_) {
        if (!going_on_) return {};
        if (size.batch >= smallest && fits(size.last())) REMUDA_TRY(run(size));
      }
    return {};
  }

  /// Largest first, at most kSizes of them. Batches below `smallest` only where nothing else was measured.
  std::vector<BatchTime> times(int smallest) const {
    std::vector<BatchTime> times;
    for (auto size = sizes_.rbegin(); size != sizes_.rend() && times.size() < kSizes; ++size)
      if (size->batch >= smallest || times.empty() || times.front().batch < smallest) times.push_back(size->time());
    return times;
  }

 private:
  bool fits(double seconds) const { return spent_s_ + seconds <= work_.limit_s; }

  Result<void> run(Size& size) {
    const double took = work_.trial(size.batch);
    size.seconds.push_back(took);
    if (std::isfinite(took)) spent_s_ += took;
    REMUDA_ASSIGN(going_on_, sign_(took));
    return {};
  }

  const AloneWork& work_;
  const std::function<Result<bool>(double)>& sign_;
  std::vector<Size> sizes_;
  double spent_s_ = 0;
  bool going_on_ = true;
};

/// What the measuring rank reports to the others while they wait.
enum class Sign : uint32_t { at_work, done, leaving };

Result<Sign> pass_on(comm::Communicator& communicator, int root, Sign sign) {
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(&sign, 1)), root, label::kAloneTurn));
  return sign;
}

/// The rank whose turn it is.
Result<Sign> measure_own(comm::Communicator& communicator, int global_batch, const AloneWork& work,
                         std::vector<BatchTime>& mine) {
  double silent_s = 0;
  const auto sign = [&](double took_s) -> Result<bool> {
    if (std::isfinite(took_s)) silent_s += took_s;
    if (silent_s >= work.sign_every_s) {
      REMUDA_TRY(pass_on(communicator, communicator.rank(), Sign::at_work));
      silent_s = 0;
    }
    return !work.leave();
  };
  REMUDA_ASSIGN(mine, measure_device(global_batch, work, sign));
  work.measured(mine);
  return pass_on(communicator, communicator.rank(), work.leave() ? Sign::leaving : Sign::done);
}

Result<Sign> wait_for_other(comm::Communicator& communicator, int rank) {
  Sign sign = Sign::at_work;
  while (sign == Sign::at_work) {
    REMUDA_ASSIGN(sign, pass_on(communicator, rank, sign));
  }
  return sign;
}

Result<std::vector<std::vector<BatchTime>>> gather(comm::Communicator& communicator,
                                                   const std::vector<BatchTime>& mine) {
  std::array<BatchTime, kSizes> padded{};  // a batch of 0: not measured
  std::ranges::copy(mine, padded.begin());
  std::vector<BatchTime> all(kSizes * communicator.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)),
                                     label::kAloneTimes));
  std::vector<std::vector<BatchTime>> by_rank(communicator.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].batch > 0) by_rank[i / kSizes].push_back(all[i]);
  return by_rank;
}

}  // namespace

std::vector<int> trial_batches(int global_batch, int unit) {
  const auto part = [&](int divisor) {
    return std::min(global_batch, std::max(1, global_batch / divisor / unit) * unit);
  };
  return {global_batch, part(2), part(4)};
}

Result<std::vector<BatchTime>> measure_device(int global_batch, const AloneWork& work,
                                              const std::function<Result<bool>(double)>& sign) {
  auto sizes = trial_batches(global_batch, work.unit);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const int smallest = sizes.front();
  std::vector<int> batches;
  for (int64_t batch = work.unit; batch < smallest; batch *= kGrowth) batches.push_back(int(batch));
  batches.insert(batches.end(), sizes.begin(), sizes.end());
  DeviceTrials trials(work, sign);
  REMUDA_TRY(trials.climb(batches));
  REMUDA_TRY(trials.repeat(smallest));
  return trials.times(smallest);
}

Result<AloneTimes> measure_alone(comm::Communicator& communicator, int global_batch, const AloneWork& work) {
  std::vector<BatchTime> mine;
  AloneTimes times;
  if (const auto* own = work.known(communicator.rank())) mine = *own;
  for (int turn = 0; turn < communicator.size() && !times.leaving; ++turn) {
    if (work.known(turn)) continue;
    REMUDA_TRY(communicator.barrier(label::kAloneTurn));
    REMUDA_ASSIGN(const Sign last, turn == communicator.rank() ? measure_own(communicator, global_batch, work, mine)
                                                               : wait_for_other(communicator, turn));
    times.leaving = last == Sign::leaving;
  }
  REMUDA_TRY(communicator.barrier(label::kAloneTurn));
  REMUDA_ASSIGN(times.by_rank, gather(communicator, mine));
  return times;
}

double alone_samples_per_s(const std::vector<BatchTime>& times) {
  for (const auto& time : times)
    if (std::isfinite(time.seconds)) return time.batch / time.seconds;
  return 0;
}

}  // namespace remuda::train

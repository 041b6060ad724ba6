#include "train/batches.h"

#include <algorithm>
#include <numeric>
#include <sched.h>

#include "balance/shares.h"
#include "base/clock.h"
#include "profile/recorder.h"

namespace remuda::train {
namespace {

constexpr int kStepsAhead = 2;
constexpr int kMostThreads = 16;  ///< unless the job asks for more: hundreds of cores are not one rank's alone

}  // namespace

Batches::Batches(const Samples& samples, const Options& options)
    : samples_(samples),
      options_(options),
      loader_(samples.set(), data::SampleOrder::shuffled(samples.size(), options.seed), options.workers,
              options.memory) {}

int Batches::step_size(uint64_t position) const {
  return int(std::min<uint64_t>(options_.global_batch, samples_.size() - position % samples_.size()));
}

std::vector<int> Batches::parts(uint64_t position, const std::vector<int>& shares) const {
  const int size = step_size(position);
  return size == options_.global_batch ? shares : balance::apportion(size, shares, options_.unit);
}

data::Range Batches::part_of(uint64_t position, const std::vector<int>& shares) const {
  const std::vector<int> all = parts(position, shares);
  const auto mine = all.begin() + options_.rank;
  return {position + uint64_t(std::accumulate(all.begin(), mine, 0)), uint64_t(*mine)};
}

Result<Batch> Batches::take(uint64_t position, const std::vector<int>& shares) {
  const double start = monotonic_s();
  std::vector<data::Range> next;
  uint64_t after = position + uint64_t(step_size(position));
  for (int i = 0; i < kStepsAhead && options_.workers > 0 && after < options_.end; ++i) {
    next.push_back(part_of(after, shares));
    after += uint64_t(step_size(after));
  }
  const data::Range mine = part_of(position, shares);
  REMUDA_ASSIGN(data::LoadedBatch loaded, [&] {
    const profile::Span span("data wait");
    return loader_.take(mine, next);
  }());
  waited_s_ = monotonic_s() - start;
  return samples_.as_tensors(loaded, mine.count);
}

int loader_threads(const job::DataSpec& data) {
  if (data.workers >= 0) return data.workers;
  if (data.format != job::DataFormat::images && data.transform.empty()) return 0;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return std::clamp(count, 1, kMostThreads);
}

}  // namespace remuda::train

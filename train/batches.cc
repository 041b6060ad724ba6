#include "train/batches.h"

#include <algorithm>
#include <sched.h>
#include <span>

#include "balance/shares.h"
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
  return size == options_.global_batch ? shares : balance::apportion(size, shares, options_.unit, options_.least);
}

/// That one, and those expected after it which are made ahead.
std::vector<CutStep> Batches::steps_from(uint64_t position, const std::vector<int>& shares) const {
  std::vector<CutStep> steps{{position, parts(position, shares)}};
  const int ahead = feed_ || options_.workers > 0 ? kStepsAhead : 0;
  for (int i = 0; i < ahead; ++i) {
    const uint64_t after = steps.back().first + steps.back().count();
    if (after >= options_.end) break;
    steps.push_back({after, parts(after, shares)});
  }
  return steps;
}

Result<data::LoadedBatch> Batches::load(const std::vector<CutStep>& steps) {
  if (feed_) return feed_->take(steps);
  std::vector<data::Range> ranges;
  for (const CutStep& step : steps) ranges.push_back(step.part(options_.rank));
  return loader_.take(ranges.front(), std::span(ranges).subspan(1));
}

Result<Batch> Batches::take(uint64_t position, const std::vector<int>& shares) {
  profile::TimedSpan span("data wait");
  const std::vector<CutStep> steps = steps_from(position, shares);
  REMUDA_ASSIGN(const data::LoadedBatch loaded, load(steps));
  waited_s_ = span.end();
  return samples_.as_tensors(loaded, steps.front().part(options_.rank).count);
}

int loader_threads(const job::DataSpec& data, bool host_computes) {
  if (data.workers >= 0) return data.workers;
  if (data.format != job::DataFormat::images && data.transform.empty()) return host_computes ? 0 : 1;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return std::clamp(count, 1, kMostThreads);
}

}  // namespace remuda::train

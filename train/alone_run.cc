#include "train/alone_run.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "train/device/memory_watch.h"
#include "train/optimizer.h"

namespace remuda::train {
namespace {

constexpr double kPatience_s = 300;  // for the device

/// The least of a time that was taken several times.
void keep_least(double& least, double seconds) { least = least > 0 ? std::min(least, seconds) : seconds; }

/// What an update of all parameters takes where this rank owns none: as long as one of values of its own, in
/// proportion.
double update_s_of_others(const AloneRun& run) {
  constexpr int64_t kValues = 1 << 20, kAtOnce = 1 << 15;
  const DeviceOps& ops = run.parallel.ops();
  const UpdateRule rule = rule_of(run.job.train);
  const torch::Device device = run.parallel.optimizer().is_on_host() ? torch::Device(torch::kCPU) : ops.device();
  const auto zeros = [&](int64_t count) {
    return torch::zeros({count}, run.parallel.flat().values().device().options().device(device));
  };
  const torch::Tensor values = zeros(kValues), gradients = zeros(kValues), scratch = zeros(kAtOnce);
  std::vector<torch::Tensor> states;
  for (size_t i = 0; i < rule.states(); ++i) states.push_back(zeros(kValues));
  const GroupSettings settings = settings_of(run.job.train, 0, 1).at(0);
  double least_s = 0;
  for (int time = 0; time < 4; ++time) {
    const double start = monotonic_s();
    for (int64_t at = 0; at < kValues; at += kAtOnce) {
      UpdateRanges ranges{.values = {values.narrow(0, at, kAtOnce)}, .gradients = {gradients.narrow(0, at, kAtOnce)}};
      for (const torch::Tensor& state : states) ranges.states.push_back({state.narrow(0, at, kAtOnce)});
      ranges.scratch = scratch;
      update(rule, settings, 1, 1, ranges);
    }
    if (!ops.wait(ops.here(), "an update", kPatience_s)) return 0;
    keep_least(least_s, monotonic_s() - start);
  }
  return least_s * double(run.parallel.flat().layout().count()) / kValues;
}

/// What a trial changes, in memory of the host: a device need not have room for it twice.
class ValuesBefore {
 public:
  explicit ValuesBefore(std::vector<torch::Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const torch::Tensor& one : tensors_)
      kept_.push_back(one.to(torch::kCPU, one.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
  }
  void restore() const {
    for (size_t i = 0; i < tensors_.size(); ++i) torch::Tensor(tensors_[i]).copy_(kept_[i]);
  }

 private:
  std::vector<torch::Tensor> tensors_, kept_;
};

/// A whole step by this device alone. Reading the samples is no part of it.
double trial_step(const AloneRun& run, const Batch& samples, AloneCosts& costs) {
  const torch::AutoGradMode grad(true);
  const ShardedBlocks::Alone alone(run.parallel.blocks());
  const MemoryWatch watch(run.parallel.ops().device());
  run.parallel.zero_gradient();
  run.pace.start();
  if (!run.local.run_alone(samples)) return INFINITY;
  const double start = monotonic_s();
  const auto updated =
      run.parallel.optimizer().step_alone(1.0 / double(samples.input.size(0)), settings_of(run.job.train, 0, 1));
  if (!updated) throw std::runtime_error(updated.error().message);
  const int rank = run.communicator.rank();
  const double slowdown = run.job.devices[rank].slowdown, own_update_s = (monotonic_s() - start) * slowdown;
  const double took_s = run.pace.stop();
  if (const auto use = watch.use()) costs.memory[int(run.local.largest_piece(samples))] = use->peak - use->before;
  const FlatLayout& layout = run.parallel.flat().layout();
  if (const size_t owned = layout.owned(rank); owned > 0)
    keep_least(costs.update_s, own_update_s * double(layout.count()) / double(owned));
  else if (costs.update_s == 0)
    costs.update_s = slowdown * update_s_of_others(run);
  return took_s - own_update_s + std::max(own_update_s, costs.update_s);
}

}  // namespace

Result<AloneCosts> measure_devices(const AloneRun& run) {
  const torch::NoGradGuard no_grad;
  const ValuesBefore values(run.parallel.own_values()), buffers(run.model.buffers());

  AloneCosts costs;
  FirstSamples first_samples(run.samples);
  int read = 0;
  const int largest = int(std::min<uint64_t>(run.job.train.global_batch, run.samples.size()));
  const AloneWork work{
      .unit = run.unit,
      .trial =
          [&](int batch) {
            const double start = monotonic_s();
            const Batch samples = first_samples(batch);
            if (std::exchange(read, std::max(read, batch)) < batch) costs.make_s = (monotonic_s() - start) / batch;
            return trial_step(run, samples, costs);
          },
      .measured =
          [&](const auto& mine) {
            run.events.send(
                {{"event", "alone"}, {"rank", run.communicator.rank()}, {"samples_per_s", alone_samples_per_s(mine)}});
          },
      .known = [&](int rank) { return run.kept ? run.kept->alone_of(rank) : nullptr; },
      .leave = [&] { return run.leave.load(); }};
  REMUDA_ASSIGN(costs.times, measure_alone(run.communicator, largest, work));

  values.restore();
  buffers.restore();
  run.parallel.optimizer().reset();
  return costs;
}

}  // namespace remuda::train

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

/// The least of a time that was taken several times.
void keep_least(double& least, double seconds) { least = least > 0 ? std::min(least, seconds) : seconds; }

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
  keep_least(costs.update_s, (monotonic_s() - start) * run.job.devices[run.communicator.rank()].slowdown);
  if (const auto use = watch.use()) costs.memory[int(run.local.largest_piece(samples))] = use->peak - use->before;
  return run.pace.stop();
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
      .unit = job::share_unit(run.job),
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

// Tests only: models whose blocks are sharded over ranks, on CPUs and on devices of other types.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "train/local_step.h"
#include "train/testing/parallel.h"

namespace remuda::train::testing {

/// Collective. Of a model on the host, which is on the device of `ops` afterwards.
inline std::unique_ptr<DataParallel> make_sharded(comm::Communicator& communicator, const DeviceOps& ops, Model& model,
                                                  ParallelOptions options) {
  options.blocks = model.blocks();
  auto parallel = DataParallel::create(communicator, ops, model.parameters(), [] {}, options);
  if (!parallel) throw std::runtime_error(parallel.error().message);
  model.to(ops.device());
  model.watch_blocks(*(*parallel)->blocks());
  return std::move(*parallel);
}

/// Collective. On rank 0, of a model without shorter types to send: copies of all parameters, on the host.
inline std::vector<torch::Tensor> whole_values(comm::Communicator& communicator, DataParallel& parallel, Model& model) {
  std::vector<torch::Tensor> copies;
  ShardedBlocks& blocks = *parallel.blocks();
  if (communicator.rank() != 0) {
    if (const auto lent = blocks.lend(); !lent) throw std::runtime_error(lent.error().message);
    return copies;
  }
  for (const torch::Tensor& parameter : model.parameters()) {
    const auto values = parallel.borrow(parameter);
    if (!values) throw std::runtime_error(values.error().message);
    copies.push_back(values->detach().to(torch::kCPU, values->scalar_type(), false, /*copy=*/true));
  }
  if (const auto ended = blocks.end_lending(); !ended) throw std::runtime_error(ended.error().message);
  return copies;
}

inline bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::ranges::equal(a, b, [](const torch::Tensor& x, const torch::Tensor& y) { return x.equal(y); });
}

/// One rank's part of a step, in `pieces` passes at most. `failed` is of this thread, from before the first pass.
inline Result<ReducedStep> reduce_sharded(const ModelCase& model_case, Model& model, DataParallel& parallel,
                                          const Batch& part, int pieces, FailedBackward& failed) {
  const int64_t samples = part.input.size(0);
  StepReport report;
  bool begun = false;
  try {
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t first = i * samples / pieces, size = (i + 1) * samples / pieces - first;
      LossSum loss;
      if (size > 0) {
        const Batch piece = narrow(part, first, size);
        loss = case_loss(model_case, model, {piece.input.to(parallel.ops().device()), piece.target});
      }
      report.weight += loss.weight;
      if (i + 1 < pieces) {
        parallel.accumulate();
      } else {
        parallel.begin(report);
        begun = true;
      }
      if (loss.sum.defined()) loss.sum.backward();
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    if (!begun) parallel.begin(report);
    parallel.give_up(kOutOfMemory);
    failed.clear();
  }
  return parallel.reduce();
}

}  // namespace remuda::train::testing

// Tests only: DataParallel on a CPU, and the whole gradient of a step, which no rank has.
#pragma once

#include <cstring>
#include <stdexcept>
#include <utility>

#include "train/data_parallel.h"
#include "train/testing/cases.h"

namespace remuda::train::testing {

inline const DeviceOps& cpu_ops() {
  static const DeviceOps ops = DeviceOps::open(torch::kCPU).value();
  return ops;
}

/// Brings the sums that this rank owns to the host, where devices have exchanged them.
inline void fetch_own_sums(comm::Communicator& communicator, const DataParallel& parallel) {
  const FlatLayout& layout = parallel.flat().layout();
  const Mirror& gradients = parallel.flat().gradients();
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket)
    if (!parallel.ops().wait(gradients.to_host(layout.own(bucket, communicator.rank())), "a copy", 10))
      throw std::runtime_error("a copy has failed");
}

/// Collective, between reduce() and update(): the summed gradient times `factor`, as a copy for each of `parameters`.
inline std::vector<torch::Tensor> whole_gradient(comm::Communicator& communicator, const DataParallel& parallel,
                                                 const std::vector<torch::Tensor>& parameters, double factor) {
  const FlatLayout& layout = parallel.flat().layout();
  const Mirror& gradients = parallel.flat().gradients();
  const size_t element = size_t(gradients.host().element_size());
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) {
    const comm::Chunk range = layout.bucket(bucket);
    const auto gathered =
        communicator.gather_parts(gradients.host_bytes().subspan(range.begin * element, range.size() * element),
                                  layout.parts(bucket).in_bytes(element), 77);
    if (!gathered) throw std::runtime_error(gathered.error().message);
  }
  std::vector<torch::Tensor> copies;
  for (const auto& parameter : parameters)
    for (size_t i = 0; i < parallel.flat().parameters().size(); ++i)
      if (parallel.flat().parameters()[i].is_same(parameter))
        copies.push_back(gradients.host()
                             .narrow(0, int64_t(layout.offset(i)), parameter.numel())
                             .view(parameter.sizes())
                             .mul(factor));
  return copies;
}

/// Collective: reduces, and updates with plain SGD at this rate where the step stands.
inline Result<ReducedStep> reduce_and_update(DataParallel& parallel, double rate) {
  REMUDA_ASSIGN(ReducedStep step, parallel.reduce());
  if (step.stands) REMUDA_TRY(parallel.update(step, {{rate, 0}}));
  return step;
}

}  // namespace remuda::train::testing

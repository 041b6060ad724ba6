// What ranks compare, so that those that differ are named and do not go on.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// A gradient was not complete when it was counted; the end of a sentence about it.
inline constexpr const char* kReadyTwiceText =
    "the gradient of a parameter became ready twice: backward() ran twice, or the parameter is in parts of the graph "
    "that run backward separately (checkpointing does so); run one backward() per step, on the sum of all losses";

/// Every rank's `mine`, in rank order. Collective.
template <typename T>
Result<std::vector<T>> gather_all(comm::Communicator& communicator, const T& mine, uint32_t label) {
  std::vector<T> all(communicator.size());
  REMUDA_TRY(
      communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label));
  return all;
}

/// Refuses parameters of types that cannot be trained.
Result<void> check_types(const std::vector<torch::Tensor>& parameters);

/// Collective. Refuses parameters that cannot be trained, or that differ in number, shape or type between ranks.
Result<void> check_models(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters);

/// Collective. Numbers of the parameters in the order in which one backward pass finishes their gradients on rank 0;
/// unused ones come last.
Result<std::vector<int64_t>> ready_order(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                                         const std::function<void()>& backward);

/// Collective: compares the bytes of all ranks (a 64-bit hash of them). The error names two ranks that differ and the
/// kernels of both.
Result<void> check_values(comm::Communicator& communicator, std::span<const std::byte> values, torch::DeviceType device,
                          int step);

}  // namespace remuda::train

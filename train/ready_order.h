// The order in which a backward pass finishes the gradients of a model's parameters: that in which they are sent.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// A gradient was not complete when it was counted; the end of a sentence about it.
inline constexpr const char* kReadyTwiceText =
    "the gradient of a parameter became ready twice: backward() ran twice, or the parameter is in parts of the graph "
    "that run backward separately (checkpointing does so); run one backward() per step, on the sum of all losses";

/// How one backward pass finishes the gradients of parameters, each known by its number.
struct ReadyOrder {
  std::vector<int64_t> order;  ///< by when they are finished; unused ones come last
  /// Of each: how often it becomes ready. More than once where recomputed blocks share it; once where it is unused.
  std::vector<int64_t> times;
};

/// Collective: that of rank 0. Two passes of `backward` are refused.
Result<ReadyOrder> ready_order(comm::Communicator& communicator, const std::vector<torch::Tensor>& parameters,
                               const std::function<void()>& backward);

}  // namespace remuda::train

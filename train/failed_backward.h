// What a backward pass that threw leaves behind.
#pragma once

#include "train/torch_compat.h"

namespace remuda::train {

/// When backward() throws, libtorch keeps the nodes that were ready but had not run in a queue of the calling thread,
/// and with them the graph and all it saved: after running out of memory in one branch of a network, most of that
/// memory would stay taken. The queue is emptied from its newest node to its oldest, so a backward pass through a node
/// that is older than all others takes the remains out. To be made, and used, on the thread that runs backward(),
/// before any graph is.
class FailedBackward {
 public:
  /// Frees what failed passes left. Takes no memory for it.
  void clear() { torch::autograd::grad({oldest_}, {leaf_}, {one_}, /*retain_graph=*/true); }

 private:
  torch::Tensor one_ = torch::ones({});
  torch::Tensor leaf_ = torch::ones({}, torch::requires_grad());
  torch::Tensor oldest_ = leaf_.clone();
};

}  // namespace remuda::train

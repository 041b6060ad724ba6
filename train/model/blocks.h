// Blocks: the parts of a model that run one after another, and who is told when one of them does.
#pragma once

#include <cstddef>

#include "train/model/recompute.h"

namespace remuda::train {

/// Is told what the blocks of a model do. They run in the order of their numbers, from 0, each once in a forward pass.
class BlockWatch {
 public:
  virtual ~BlockWatch() = default;
  virtual void before_forward(size_t block) = 0;
  /// Not where the block has thrown.
  virtual void after_forward(size_t block) = 0;
  /// Whether a block's output is a view of parameters whose memory goes with the block.
  virtual bool holds(size_t block, const torch::Tensor& output) const = 0;
  /// On whatever thread runs the backward pass: the gradient of the block's output is complete, and all that the blocks
  /// after it had to compute in this pass is done, or was given to the device. For libtorch runs what was recorded
  /// last first, as long as a model computes on one device.
  virtual void before_backward(size_t block) = 0;
};

/// block(input), which is number `number`. `watch` outlives the backward pass.
torch::Tensor watched(BlockWatch& watch, size_t number, const Block& block, const torch::Tensor& input);

}  // namespace remuda::train

// HollowBlock: the parameters of a block, whose memory comes and goes, and so does that of their gradients.
//
// Parameters, and whatever of them a backward pass has kept, are views of one storage, whose memory is changed under
// them: they read what it has at the time. libtorch does not notice that; so nothing of the block may compute while it
// has none, and what it has may not be changed while it is needed.
#pragma once

#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

/// A flat tensor without memory of its own.
class HollowTensor {
 public:
  HollowTensor(int64_t count, const torch::TensorOptions& options);
  HollowTensor(HollowTensor&&) = default;
  ~HollowTensor() { release(); }

  const torch::Tensor& tensor() const { return tensor_; }
  /// From now on it lies where `room` begins, which has its type and device and is at least as long.
  void hold(const torch::Tensor& room);
  void release();

 private:
  torch::Tensor tensor_, room_;
};

class HollowBlock {
 public:
  /// From now on `parameters`, all of one type, lie on `device` and have no memory, nor have their gradients. Each has
  /// its place in one flat tensor of `extent` elements, where its offset says.
  HollowBlock(std::vector<torch::Tensor> parameters, std::vector<size_t> offsets, size_t extent, torch::Device device);

  HollowTensor& values() { return values_; }
  HollowTensor& gradients() { return gradients_; }
  /// Of its flat tensors, in elements.
  size_t extent() const { return size_t(values_.tensor().numel()); }
  /// Parameter i in such a flat tensor.
  torch::Tensor view(const torch::Tensor& flat, size_t i) const;
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  /// Whether what each parameter accumulates lands in gradients().
  bool gradients_in_place() const;

 private:
  std::vector<torch::Tensor> parameters_, gradient_views_;
  std::vector<size_t> offsets_;
  HollowTensor values_, gradients_;
};

}  // namespace remuda::train

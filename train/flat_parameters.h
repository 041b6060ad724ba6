// FlatParameters: a model's parameters and gradients as two flat tensors; the parameters are views of them.
//
// One flat gradient lets buckets be plain ranges of memory that the transport can reach; one flat parameter lets the
// optimizer, the hash and the broadcast work on all of it at once. Elementwise optimizers give the same result either
// way.
#pragma once

#include <span>
#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

class FlatParameters {
 public:
  /// Lays `parameters` (one floating-point type, each once) out in the given order. `gradient` is flat, of that type,
  /// at least count(parameters) long, zeroed, and outlives this object.
  FlatParameters(std::vector<torch::Tensor> parameters, const torch::Tensor& gradient);

  /// Elements of all parameters together.
  static int64_t count(const std::vector<torch::Tensor>& parameters);

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  /// Where parameter i starts; offsets().back() is the end of the last.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  /// The flat values; its grad is the flat gradient. What the optimizer is given.
  torch::Tensor& values() { return values_; }
  std::span<std::byte> value_bytes();
  /// Sets the gradient to zero and makes sure that every parameter still accumulates into it.
  void zero_gradient();
  /// Whether parameter i's gradient is its view of the flat one, so that what it accumulates lands there.
  bool gradient_in_place(size_t i) const;

 private:
  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> gradients_;
  std::vector<int64_t> offsets_;
  torch::Tensor values_;
};

}  // namespace remuda::train

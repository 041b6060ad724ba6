// Model: the model that a run trains, built in or loaded from TorchScript.
#pragma once

#include <memory>
#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

/// What the data requires of a model.
struct ModelInput {
  int channels = 0, height = 0, width = 0;  ///< images
  int classes = 0;                          ///< images: different labels
  int context = 0;                          ///< tokens: longest window
};

class Model {
 public:
  virtual ~Model() = default;
  /// Images [n, channels, height, width] -> scores [n, classes]; tokens [n, t] (int64) -> scores [n, t, vocabulary].
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  /// Each trained tensor once, tied weights too, in registration order.
  virtual std::vector<torch::Tensor> parameters() = 0;
  /// State that is not trained: the running statistics of batch norm.
  virtual std::vector<torch::Tensor> buffers() = 0;
  virtual void set_training(bool training) = 0;
  virtual void to(torch::ScalarType type) = 0;
};

}  // namespace remuda::train

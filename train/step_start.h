// StepStart: where a step began, so that it can be repeated as if it had not been tried: the generators of random
// numbers, and the model's buffers, such as batch norm's statistics, which each forward pass changes.
#pragma once

#include <map>
#include <optional>

#include "train/device/random_state.h"
#include "train/model/model.h"

namespace remuda::train {

class StepStart {
 public:
  /// The model, on `device`, outlives it. What it needs of the device's memory is taken here, once.
  StepStart(Model& model, torch::Device device);
  /// A step begins. One operation for the buffers of each type.
  void keep();
  /// Everything is again as it was at keep(), any number of times.
  void restore() const;

 private:
  Model& model_;
  const torch::Device device_;
  std::optional<RandomState> random_;
  std::map<torch::ScalarType, torch::Tensor> values_;  ///< of all buffers of a type, one after the other
};

}  // namespace remuda::train

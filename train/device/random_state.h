// RandomState: where the generators stand that random operations draw from: the host's, and a device's own.
//
//   const RandomState before(device);
//   auto first = dropout(x);
//   before.restore();
//   auto second = dropout(x);     // the same bits
//
// Generators belong to the process: threads that draw at the same time disturb each other.
#pragma once

#include "train/torch_compat.h"

namespace remuda::train {

class RandomState {
 public:
  /// As they stand now.
  explicit RandomState(torch::Device device);
  /// As another one was; `own` may be undefined.
  RandomState(torch::Device device, torch::Tensor host, torch::Tensor own)
      : device_(device), host_(std::move(host)), own_(std::move(own)) {}

  const torch::Tensor& host() const { return host_; }
  const torch::Tensor& own() const { return own_; }
  /// From here on the same numbers come once more.
  void restore() const;

 private:
  torch::Device device_;
  torch::Tensor host_, own_;  ///< own_: undefined where the device's type has no generator
};

}  // namespace remuda::train

// Arrivals: tensors that get their values from a checkpoint. What lies in plain memory of the host is read right to
// where it belongs; the rest comes by way of such memory, of which no more is taken than kMostStaged_bytes and a
// tensor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/pieces.h"
#include "train/torch_compat.h"

namespace remuda::train {

class Arrivals {
 public:
  static constexpr size_t kMostStaged_bytes = 256 << 20;

  /// The pieces outlive it.
  explicit Arrivals(checkpoint::Pieces& pieces) : pieces_(pieces) {}
  checkpoint::Pieces& pieces() { return pieces_; }

  /// Elements of a tensor of the model, as many as `to` has, from its element `first` on. They are in `to` after
  /// fetch(), or before.
  Result<void> want(const std::string& kind, const std::string& name, uint64_t first, torch::Tensor to);

  /// A tensor of one of the files, of the type and size of what it is for.
  struct Part {
    size_t file = 0;
    const weights::TensorInfo* info = nullptr;
    double weight = 1;
  };
  /// The same of the sum of the parts, each times its weight; of a single one, as it is.
  Result<void> want(const std::vector<Part>& parts, torch::Tensor to);

  Result<void> fetch();

 private:
  torch::Tensor staged_for(const torch::Tensor& to);
  torch::Tensor room_for(const torch::Tensor& to);
  Result<void> fetch_if_many();

  checkpoint::Pieces& pieces_;
  std::vector<std::function<void()>> landings_;  ///< of what is staged, once it is read
  size_t staged_bytes_ = 0;
};

}  // namespace remuda::train

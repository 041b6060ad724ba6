#include "train/hollow_block.h"

#include <numeric>

namespace remuda::train {
namespace {

int64_t elements_of(const std::vector<torch::Tensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), int64_t{0},
                         [](int64_t sum, const torch::Tensor& one) { return sum + one.numel(); });
}

torch::TensorOptions options_on(torch::Device device, const torch::Tensor& like) {
  return torch::TensorOptions().dtype(like.scalar_type()).device(device);
}

}  // namespace

HollowTensor::HollowTensor(int64_t count, const torch::TensorOptions& options)
    : tensor_(torch::empty({count}, options)) {
  release();
}

void HollowTensor::hold(const torch::Tensor& room) {
  tensor_.storage().unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(room.data_ptr(), room.device()));
  room_ = room;
}

void HollowTensor::release() {
  if (!tensor_.defined()) return;  // moved from
  tensor_.storage().unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(nullptr, tensor_.device()));
  room_ = torch::Tensor();
}

HollowBlock::HollowBlock(std::vector<torch::Tensor> parameters, torch::Device device)
    : parameters_(std::move(parameters)),
      values_(elements_of(parameters_), options_on(device, parameters_.at(0))),
      gradients_(elements_of(parameters_), options_on(device, parameters_.at(0))) {
  const torch::NoGradGuard no_grad;
  int64_t at = 0;
  for (torch::Tensor& parameter : parameters_) {
    const int64_t count = parameter.numel();
    const auto view = [&](const HollowTensor& flat) {
      return flat.tensor().narrow(0, at, count).view(parameter.sizes());
    };
    parameter.set_data(view(values_));
    gradient_views_.push_back(view(gradients_));
    parameter.mutable_grad() = gradient_views_.back();
    at += count;
  }
}

bool HollowBlock::gradients_in_place() const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!parameters_[i].grad().is_same(gradient_views_[i])) return false;
  return true;
}

}  // namespace remuda::train

#include "train/hollow_block.h"

namespace remuda::train {
namespace {

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

HollowBlock::HollowBlock(std::vector<torch::Tensor> parameters, std::vector<size_t> offsets, size_t extent,
                         torch::Device device)
    : parameters_(std::move(parameters)),
      offsets_(std::move(offsets)),
      values_(int64_t(extent), options_on(device, parameters_.at(0))),
      gradients_(int64_t(extent), options_on(device, parameters_.at(0))) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].set_data(view(values_.tensor(), i));
    gradient_views_.push_back(view(gradients_.tensor(), i));
    parameters_[i].mutable_grad() = gradient_views_.back();
  }
}

torch::Tensor HollowBlock::view(const torch::Tensor& flat, size_t i) const {
  return flat.narrow(0, int64_t(offsets_[i]), parameters_[i].numel()).view(parameters_[i].sizes());
}

bool HollowBlock::gradients_in_place() const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!parameters_[i].grad().is_same(gradient_views_[i])) return false;
  return true;
}

}  // namespace remuda::train

#include "train/step_start.h"

namespace remuda::train {

StepStart::StepStart(Model& model, torch::Device device) : model_(model), device_(device) { keep(); }

void StepStart::keep() {
  const torch::NoGradGuard no_grad;
  random_.emplace(device_);
  std::map<torch::ScalarType, std::vector<torch::Tensor>> buffers;
  std::map<torch::ScalarType, int64_t> counts;
  for (const torch::Tensor& buffer : model_.buffers()) {
    buffers[buffer.scalar_type()].push_back(buffer.detach().flatten());
    counts[buffer.scalar_type()] += buffer.numel();
  }
  for (const auto& [type, tensors] : buffers) {
    torch::Tensor& values = values_[type];
    if (!values.defined() || values.numel() != counts[type] || values.device() != tensors.front().device())
      values = torch::empty({counts[type]}, tensors.front().options());
    torch::cat_out(values, tensors);
  }
}

void StepStart::restore() const {
  const torch::NoGradGuard no_grad;
  random_->restore();
  std::map<torch::ScalarType, int64_t> begin;
  for (const torch::Tensor& buffer : model_.buffers()) {
    int64_t& at = begin[buffer.scalar_type()];
    buffer.copy_(values_.at(buffer.scalar_type()).narrow(0, at, buffer.numel()).view(buffer.sizes()));
    at += buffer.numel();
  }
}

}  // namespace remuda::train

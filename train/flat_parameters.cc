#include "train/flat_parameters.h"

#include "base/check.h"

namespace remuda::train {

int64_t FlatParameters::count(const std::vector<torch::Tensor>& parameters) {
  int64_t total = 0;
  for (const auto& parameter : parameters) total += parameter.numel();
  return total;
}

FlatParameters::FlatParameters(std::vector<torch::Tensor> parameters, const torch::Tensor& gradient)
    : parameters_(std::move(parameters)), offsets_{0} {
  torch::NoGradGuard no_grad;
  const int64_t total = count(parameters_);
  values_ = torch::empty({total}, gradient.options());
  for (auto& parameter : parameters_) {
    REMUDA_CHECK(parameter.scalar_type() == gradient.scalar_type(), "parameters and gradient have one type");
    const int64_t begin = offsets_.back(), size = parameter.numel();
    auto value = values_.narrow(0, begin, size).view(parameter.sizes());
    value.copy_(parameter);
    parameter.set_data(value);
    gradients_.push_back(gradient.narrow(0, begin, size).view(parameter.sizes()));
    offsets_.push_back(begin + size);
  }
  values_.mutable_grad() = gradient.narrow(0, 0, total);
  zero_gradient();
}

std::span<std::byte> FlatParameters::value_bytes() {
  return {static_cast<std::byte*>(values_.data_ptr()), values_.nbytes()};
}

bool FlatParameters::gradient_in_place(size_t i) const { return parameters_[i].grad().is_same(gradients_[i]); }

void FlatParameters::zero_gradient() {
  torch::NoGradGuard no_grad;
  values_.mutable_grad().zero_();
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!gradient_in_place(i)) parameters_[i].mutable_grad() = gradients_[i];
}

}  // namespace remuda::train

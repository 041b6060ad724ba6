#include "train/flat_parameters.h"

namespace remuda::train {
namespace {

size_t bytes_of(const std::optional<Mirror>& mirror) { return mirror ? mirror->device().nbytes() : 0; }

}  // namespace

Result<FlatParameters> FlatParameters::create(comm::Communicator& communicator, const DeviceOps& ops,
                                              std::vector<torch::Tensor> parameters, FlatLayout layout,
                                              SentAs sent_as) {
  const torch::ScalarType type = parameters.at(0).scalar_type();
  REMUDA_ASSIGN(Mirror values, Mirror::create(communicator, ops, layout.whole_extent(), type));
  REMUDA_ASSIGN(Mirror gradients, Mirror::create(communicator, ops, layout.whole_extent(), type));
  const auto image_in = [&](torch::ScalarType shorter) -> Result<std::optional<Mirror>> {
    if (shorter == type) return std::nullopt;
    return Mirror::create(communicator, ops, layout.whole_extent(), shorter);
  };
  REMUDA_ASSIGN(std::optional<Mirror> rounded, image_in(sent_as.values));
  REMUDA_ASSIGN(std::optional<Mirror> rounded_gradients, image_in(sent_as.gradients));
  return FlatParameters(std::move(parameters), std::move(layout), std::move(values), std::move(gradients),
                        std::move(rounded), std::move(rounded_gradients));
}

FlatParameters::FlatParameters(std::vector<torch::Tensor> parameters, FlatLayout layout, Mirror values,
                               Mirror gradients, std::optional<Mirror> rounded, std::optional<Mirror> rounded_gradients)
    : parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      values_(std::move(values)),
      gradients_(std::move(gradients)),
      rounded_(std::move(rounded)),
      rounded_gradients_(std::move(rounded_gradients)) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < layout_.whole_parameters(); ++i) {
    const auto view = [&](const Mirror& mirror) {
      return mirror.device().narrow(0, int64_t(layout_.offset(i)), parameters_[i].numel()).view(parameters_[i].sizes());
    };
    auto value = view(values_);
    value.copy_(parameters_[i]);
    parameters_[i].set_data(value);
    views_.push_back(view(gradients_));
  }
  zero_gradient();
}

size_t FlatParameters::bytes() const {
  return values_.device().nbytes() + gradients_.device().nbytes() + bytes_of(rounded_) + bytes_of(rounded_gradients_);
}

Result<void> FlatParameters::send_gradients_as(comm::Communicator& communicator, const DeviceOps& ops,
                                               torch::ScalarType shorter) {
  REMUDA_ASSIGN(Mirror rounded, Mirror::create(communicator, ops, layout_.whole_extent(), shorter));
  rounded_gradients_.emplace(std::move(rounded));
  return {};
}

void FlatParameters::round_gradients(comm::Chunk range) const {
  if (!rounded_gradients_) return;
  const torch::NoGradGuard no_grad;
  const auto of = [&](const Mirror& mirror) {
    return mirror.device().narrow(0, int64_t(range.begin), int64_t(range.size()));
  };
  of(*rounded_gradients_).copy_(of(gradients_));
}

bool FlatParameters::gradient_in_place(size_t i) const { return parameters_[i].grad().is_same(views_[i]); }

void FlatParameters::zero_gradient() {
  const torch::NoGradGuard no_grad;
  torch::Tensor(gradients_.device()).zero_();
  put_gradients_in_place();
}

void FlatParameters::put_gradients_in_place() {
  for (size_t i = 0; i < layout_.whole_parameters(); ++i)
    if (!gradient_in_place(i)) parameters_[i].mutable_grad() = views_[i];
}

}  // namespace remuda::train

#include "train/model/native.h"

namespace remuda::train {
namespace {

struct Mlp final : TensorModule {
  Mlp(int inputs, const std::vector<int>& hidden, int classes) {
    for (const int width : hidden) {
      layers_->push_back(torch::nn::Linear(inputs, width));
      inputs = width;
    }
    layers_->push_back(torch::nn::Linear(inputs, classes));
    register_module("layers", layers_);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto x = input.flatten(1);
    for (size_t i = 0; i < layers_->size(); ++i) {
      x = layers_->at<torch::nn::LinearImpl>(i).forward(x);
      if (i + 1 < layers_->size()) x = x.relu();
    }
    return x;
  }

  torch::nn::ModuleList layers_;
};

}  // namespace

std::shared_ptr<TensorModule> make_mlp(const job::ModelSpec& spec, const ModelInput& input) {
  return std::make_shared<Mlp>(input.channels * input.height * input.width, spec.hidden, input.classes);
}

}  // namespace remuda::train

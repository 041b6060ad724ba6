#include "train/model/native.h"

namespace remuda::train {
namespace {

struct Mlp final : TensorModule {
  Mlp(int inputs, const std::vector<int>& hidden, int classes) {
    for (const int width : hidden) {
      layers_.emplace_back(inputs, width);
      inputs = width;
    }
    layers_.emplace_back(inputs, classes);
    torch::nn::ModuleList list;
    for (const auto& layer : layers_) list->push_back(layer);
    register_module("layers", list);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto x = input.flatten(1);
    for (size_t i = 0; i + 1 < layers_.size(); ++i)
      x = run(
          i, *layers_[i], [layer = layers_[i]](const torch::Tensor& in) mutable { return layer->forward(in).relu(); },
          x);
    return layers_.back()->forward(x);
  }

  std::vector<std::shared_ptr<torch::nn::Module>> blocks() const override {
    std::vector<std::shared_ptr<torch::nn::Module>> all;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) all.push_back(layers_[i].ptr());
    return all;
  }

  std::vector<torch::nn::Linear> layers_;
};

}  // namespace

std::shared_ptr<TensorModule> make_mlp(const job::ModelSpec& spec, const ModelInput& input) {
  return std::make_shared<Mlp>(input.channels * input.height * input.width, spec.hidden, input.classes);
}

}  // namespace remuda::train

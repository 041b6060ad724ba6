#include <numeric>

#include "train/model/batch_norm.h"
#include "train/model/native.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

namespace nn = torch::nn;

/// Weights as He et al. 2015 (arXiv:1502.01852) draw them, for layers that feed a ReLU.
nn::Conv2d conv(int in, int out, int size, int stride) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
  nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
  return layer;
}

nn::AnyModule norm(job::Norm kind, int channels) {
  if (kind == job::Norm::batch) return nn::AnyModule(BatchNorm(channels));
  return nn::AnyModule(nn::GroupNorm(std::gcd(channels, 8), channels));
}

struct Block final : nn::Module {
  Block(job::Norm kind, int in, int out, int stride)
      : conv1_(conv(in, out, 3, stride)),
        conv2_(conv(out, out, 3, 1)),
        norm1_(norm(kind, out)),
        norm2_(norm(kind, out)) {
    register_module("conv1", conv1_);
    register_module("norm1", norm1_.ptr());
    register_module("conv2", conv2_);
    register_module("norm2", norm2_.ptr());
    if (stride != 1 || in != out) shortcut_ = register_module("shortcut", conv(in, out, 1, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = norm1_.forward(widened(conv1_->forward(x))).relu_();
    y = norm2_.forward(widened(conv2_->forward(y)));
    return (y + (shortcut_ ? shortcut_->forward(x) : x)).relu_();
  }

  nn::Conv2d conv1_, conv2_, shortcut_{nullptr};
  nn::AnyModule norm1_, norm2_;
};

struct ResNet final : TensorModule {
  ResNet(const job::ModelSpec& spec, const ModelInput& input)
      : stem_(conv(input.channels, spec.width, 3, 2)), norm_(norm(spec.norm, spec.width)) {
    register_module("stem", stem_);
    register_module("norm", norm_.ptr());
    int channels = spec.width;
    for (int stage = 0; stage < kStages; ++stage) {
      for (int i = 0; i < spec.depth; ++i) {
        const int out = spec.width << stage;
        const int stride = stage > 0 && i == 0 ? 2 : 1;
        blocks_.push_back(register_module("block" + std::to_string(blocks_.size()),
                                          std::make_shared<Block>(spec.norm, channels, out, stride)));
        channels = out;
      }
    }
    head_ = register_module("head", nn::Linear(channels, input.classes));
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto x = norm_.forward(widened(stem_->forward(input))).relu_();
    for (size_t i = 0; i < blocks_.size(); ++i)
      x = run(i, *blocks_[i], [block = blocks_[i]](const torch::Tensor& in) { return block->forward(in); }, x);
    return head_->forward(x.mean({2, 3}));
  }

  std::vector<std::shared_ptr<nn::Module>> blocks() const override { return {blocks_.begin(), blocks_.end()}; }

  static constexpr int kStages = 3;
  nn::Conv2d stem_;
  nn::AnyModule norm_;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear head_{nullptr};
};

}  // namespace

std::shared_ptr<TensorModule> make_resnet(const job::ModelSpec& spec, const ModelInput& input) {
  return std::make_shared<ResNet>(spec, input);
}

}  // namespace remuda::train

#include <cmath>
#include <limits>

#include "train/device/vendor_runtime.h"
#include "train/model/native.h"
#include "train/precision.h"

namespace remuda::train {
namespace {

namespace nn = torch::nn;

/// Causal self-attention: softmax(q k^T / sqrt(d)) v over the positions up to one's own.
struct Attention final : nn::Module {
  Attention(int width, int heads, bool fused)
      : heads_(heads), fused_(fused), in_(width, 3 * width), out_(width, width) {
    register_module("in", in_);
    register_module("out", out_);
  }

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) {
    const auto n = x.size(0), t = x.size(1), width = x.size(2);
    const auto qkv = in_->forward(x).view({n, t, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    // CPUs gain nothing by it, other devices may lack it, and its backward pass adds up in any order.
    const bool fused =
        fused_ && has_attention_kernel(x.device().type()) && !at::globalContext().deterministicAlgorithms();
    const auto mixed = fused ? fused_attention(qkv[0], qkv[1], qkv[2]) : attend(qkv, mask);
    return out_->forward(mixed.transpose(1, 2).reshape({n, t, width}));
  }

  static torch::Tensor attend(const torch::Tensor& qkv, const torch::Tensor& mask) {
    const double scale = 1.0 / std::sqrt(double(qkv.size(-1)));
    const auto scores = torch::matmul(qkv[0] * scale, qkv[1].transpose(-2, -1)) + mask;
    return torch::matmul(scores.softmax(-1), qkv[2]);
  }

  int heads_;
  bool fused_;
  nn::Linear in_, out_;
};

struct Layer final : nn::Module {
  Layer(int width, int heads, bool fused)
      : norm1_(nn::LayerNormOptions({width})),
        norm2_(nn::LayerNormOptions({width})),
        attention_(std::make_shared<Attention>(width, heads, fused)),
        up_(width, 4 * width),
        down_(4 * width, width) {
    register_module("norm1", norm1_);
    register_module("attention", attention_);
    register_module("norm2", norm2_);
    register_module("up", up_);
    register_module("down", down_);
  }

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& mask) {
    const auto x = input + attention_->forward(norm1_->forward(widened(input)), mask);
    return x + down_->forward(torch::gelu(up_->forward(norm2_->forward(widened(x)))));
  }

  nn::LayerNorm norm1_, norm2_;
  std::shared_ptr<Attention> attention_;
  nn::Linear up_, down_;
};

struct Gpt final : TensorModule {
  Gpt(const job::ModelSpec& spec, int context, bool fused)
      : tokens_(spec.vocabulary, spec.width),
        positions_(context, spec.width),
        norm_(nn::LayerNormOptions({spec.width})) {
    register_module("tokens", tokens_);
    register_module("positions", positions_);
    for (int i = 0; i < spec.depth; ++i)
      layers_.push_back(
          register_module("layer" + std::to_string(i), std::make_shared<Layer>(spec.width, spec.heads, fused)));
    register_module("norm", norm_);
    torch::NoGradGuard no_grad;
    tokens_->weight.normal_(0, 0.02);
    positions_->weight.normal_(0, 0.02);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    const auto t = input.size(1);
    const auto here = torch::arange(t, input.options());
    auto x = tokens_->forward(input) + positions_->forward(here);
    const auto mask =
        torch::full({t, t}, -std::numeric_limits<float>::infinity(), x.options().requires_grad(false)).triu(1);
    for (size_t i = 0; i < layers_.size(); ++i)
      x = run(
          i, *layers_[i], [layer = layers_[i], mask](const torch::Tensor& in) { return layer->forward(in, mask); }, x);
    return torch::linear(norm_->forward(widened(x)), tokens_->weight);
  }

  std::vector<std::shared_ptr<nn::Module>> blocks() const override { return {layers_.begin(), layers_.end()}; }

  nn::Embedding tokens_, positions_;
  std::vector<std::shared_ptr<Layer>> layers_;
  nn::LayerNorm norm_;
};

}  // namespace

std::shared_ptr<TensorModule> make_gpt(const job::ModelSpec& spec, const ModelInput& input, bool fused) {
  return std::make_shared<Gpt>(spec, input.context, fused);
}

}  // namespace remuda::train

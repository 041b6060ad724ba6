// The built-in models: torch::nn modules behind the Model interface.
#pragma once

#include "job/train_job.h"
#include "train/model/model.h"

namespace remuda::train {

/// A torch::nn module with one tensor in and one out.
struct TensorModule : torch::nn::Module {
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
};

/// In float32 where a device computes in 16 bits: normalisation adds up squares, and libtorch's CPU kernels want input
/// and weights of one type.
inline torch::Tensor widened(const torch::Tensor& x) {
  const bool is_short = x.scalar_type() == torch::kHalf || x.scalar_type() == torch::kBFloat16;
  return is_short ? x.to(torch::kFloat) : x;
}

/// Fully connected layers with ReLU between them.
std::shared_ptr<TensorModule> make_mlp(const job::ModelSpec& spec, const ModelInput& input);
/// Residual network for small images (He et al. 2016, arXiv:1512.03385): a stride-2 stem and three stages that halve
/// the size and double the channels.
std::shared_ptr<TensorModule> make_resnet(const job::ModelSpec& spec, const ModelInput& input);
/// Decoder-only transformer, layer norm first (Radford et al. 2019, "GPT-2"); the output layer is the token embedding.
std::shared_ptr<TensorModule> make_gpt(const job::ModelSpec& spec, const ModelInput& input);

}  // namespace remuda::train

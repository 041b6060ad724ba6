// The built-in models: torch::nn modules behind the Model interface.
#pragma once

#include "job/train_job.h"
#include "train/model/model.h"

namespace remuda::train {

/// A torch::nn module with one tensor in and one out.
struct TensorModule : torch::nn::Module {
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
};

/// Fully connected layers with ReLU between them.
std::shared_ptr<TensorModule> make_mlp(const job::ModelSpec& spec, const ModelInput& input);
/// Residual network for small images (He et al. 2016, arXiv:1512.03385): a stride-2 stem and three stages that halve
/// the size and double the channels.
std::shared_ptr<TensorModule> make_resnet(const job::ModelSpec& spec, const ModelInput& input);
/// Decoder-only transformer, layer norm first (Radford et al. 2019, "GPT-2"); the output layer is the token embedding.
std::shared_ptr<TensorModule> make_gpt(const job::ModelSpec& spec, const ModelInput& input);

}  // namespace remuda::train

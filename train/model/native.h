// The built-in models: torch::nn modules behind the Model interface.
#pragma once

#include "job/train_job.h"
#include "train/model/blocks.h"
#include "train/model/model.h"

namespace remuda::train {

/// A torch::nn module with one tensor in and one out.
class TensorModule : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  /// From now on what its first blocks compute, `count` of them, is not kept for backward(), but computed again.
  void recompute_blocks(size_t count) { recomputed_ = count; }
  void watch_blocks(BlockWatch& watch) { watch_ = &watch; }
  /// Those that run() runs, by their numbers.
  virtual std::vector<std::shared_ptr<torch::nn::Module>> blocks() const = 0;

 protected:
  /// Runs its block `i`. `forward` owns what it uses, as it may run after this module has ended.
  torch::Tensor run(size_t i, const torch::nn::Module& block, Block forward, const torch::Tensor& input) const {
    const auto compute = [&](const torch::Tensor& x) {
      if (i >= recomputed_) return forward(x);
      return recomputed(std::move(forward), x, [buffers = block.buffers()] { return buffers; });
    };
    return watch_ ? watched(*watch_, i, compute, input) : compute(input);
  }

 private:
  size_t recomputed_ = 0;
  BlockWatch* watch_ = nullptr;
};

/// Fully connected layers with ReLU between them.
std::shared_ptr<TensorModule> make_mlp(const job::ModelSpec& spec, const ModelInput& input);
/// Residual network for small images (He et al. 2016, arXiv:1512.03385): a stride-2 stem and three stages that halve
/// the size and double the channels.
std::shared_ptr<TensorModule> make_resnet(const job::ModelSpec& spec, const ModelInput& input);
/// Decoder-only transformer, layer norm first (Radford et al. 2019, "GPT-2"); the output layer is the token embedding.
/// `fused`: attention by fused_attention().
std::shared_ptr<TensorModule> make_gpt(const job::ModelSpec& spec, const ModelInput& input, bool fused);

}  // namespace remuda::train

// Batch norm over the samples of all ranks (Ioffe and Szegedy 2015, "Batch Normalization", arXiv:1502.03167; on several
// devices: Peng et al. 2018, "MegDet", arXiv:1711.07240). Of a batch that is split over ranks, in whatever way,
// outputs, gradients and running statistics are those of one device that has it all.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "train/model/model.h"
#include "train/norm_exchange.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// What a module of batch norm has; undefined where it has none.
struct NormTensors {
  torch::Tensor weight, bias;
  torch::Tensor running_mean, running_var, batches;  ///< `batches`: how many were counted
};

/// Refuses, as PyTorch does, to normalise one value for each channel while it trains: it has no variance, what comes
/// out is the bias, and torch::batch_norm makes NaN of the running variance, for ever.
void check_values(const torch::Tensor& input);

/// What makes a module's batch norm that of all ranks, while it trains. A forward pass without gradients has the
/// samples of this rank alone, and takes no single value for each channel; see check_values(). One that all ranks
/// together have is not counted in the statistics. Statistics are float32, or float64 with input of that type.
class SynchronizedNorm final : public NormLayer {
 public:
  /// `tensors` gives those of the module as they are at the time. The exchange outlives the last forward and backward
  /// pass.
  SynchronizedNorm(NormExchange& exchange, std::function<NormTensors()> tensors,
                   const torch::nn::BatchNormOptions& options);

  /// `input`: [n, channels, ...]. May be used by a graph that outlives the module.
  static torch::Tensor forward(const std::shared_ptr<SynchronizedNorm>& norm, const torch::Tensor& input);

  void count(std::span<const double> moments) override;

  NormExchange& exchange() { return exchange_; }
  double epsilon() const { return epsilon_; }

 private:
  NormExchange& exchange_;
  const std::function<NormTensors()> tensors_;
  const double epsilon_;
  std::optional<double> momentum_;  ///< not given: all batches count the same
};

/// Batch norm as torch::nn has it, of the samples of this rank; see check_values().
torch::Tensor local_batch_norm(const NormTensors& tensors, const torch::nn::BatchNormOptions& options, bool training,
                               const torch::Tensor& input);

/// torch::nn::BatchNorm2d, which can be made that of all ranks. (That one's pretty_print() cannot be linked.)
class BatchNormImpl final : public torch::nn::NormImplBase<2, BatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using torch::nn::NormImplBase<2, BatchNormImpl, torch::nn::BatchNormOptions>::NormImplBase;

  void synchronize(NormExchange& exchange);
  NormStatistics statistics() const;
  torch::Tensor forward(const torch::Tensor& input);

 protected:
  void _check_input_dim(const torch::Tensor& input) override;

 private:
  NormTensors tensors() const { return {weight, bias, running_mean, running_var, num_batches_tracked}; }
  std::shared_ptr<SynchronizedNorm> synchronized_;
};
TORCH_MODULE(BatchNorm);

}  // namespace remuda::train

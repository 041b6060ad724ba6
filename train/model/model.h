// Model: the model that a run trains, built in or loaded from TorchScript.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/torch_compat.h"

namespace remuda::train {

class BlockWatch;
class NormExchange;

/// What the data requires of a model.
struct ModelInput {
  int channels = 0, height = 0, width = 0;  ///< images
  int classes = 0;                          ///< images: different labels
  int context = 0;                          ///< tokens: longest window
};

struct NamedTensor {
  std::string name;  ///< as the module names it: "layer0.up.weight"
  torch::Tensor tensor;
};

/// Running statistics of a batch norm: after each batch (1 - m) times what they were, and m times the batch's own.
struct NormStatistics {
  torch::Tensor mean, variance;
  torch::Tensor batches;           ///< how many were counted; undefined where nobody does: each forward pass counts one
  std::optional<double> momentum;  ///< m; not given: 1 / `batches`, so that all batches count the same
  bool is_known = true;            ///< else what m is, is not known
};

/// Takes the next bytes of what is written; returns how many.
using WriteBytes = std::function<size_t(const void* bytes, size_t count)>;

class Model {
 public:
  virtual ~Model() = default;
  /// Images [n, channels, height, width] -> scores [n, classes]; tokens [n, t] (int64) -> scores [n, t, vocabulary].
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  /// Each trained tensor once, tied weights too, in registration order.
  virtual std::vector<torch::Tensor> parameters() = 0;
  /// State that is not trained: the running statistics of batch norm.
  virtual std::vector<torch::Tensor> buffers() = 0;
  /// All parameters, those that are not trained too; a tied weight under each of its names.
  virtual std::vector<NamedTensor> named_parameters() = 0;
  virtual std::vector<NamedTensor> named_buffers() = 0;
  virtual void set_training(bool training) = 0;
  virtual void to(torch::ScalarType type) = 0;
  /// Writes the model with its program, as TorchScript on the CPU, for evaluation, and leaves it so. Only a model from
  /// such a file can: the others return false. Needs memory for a copy of the parameters.
  virtual bool write_script(const WriteBytes&) { return false; }
  virtual void to(torch::Device device) = 0;
  /// From now on its batch norms normalise the samples of all ranks, by way of this exchange, which outlives the
  /// model's last forward and backward pass. False where that cannot be.
  virtual bool synchronize_norms(NormExchange&) { return false; }
  /// Those of its batch norms that have any, in the same order on all ranks.
  virtual std::vector<NormStatistics> norm_statistics() { return {}; }
  /// Its blocks, in the order in which they run: of each, the parameters that nothing else uses. Empty where it has
  /// none.
  virtual std::vector<std::vector<torch::Tensor>> blocks() { return {}; }
  /// From now on `watch` is told what these blocks do; it outlives the model's last forward and backward pass.
  virtual void watch_blocks(BlockWatch& /*watch*/) {}
  /// From now on what its first blocks compute, `count` of them or all there are, is not kept for backward(), but
  /// computed again: the first ones, since what the others keep is freed before. False where it has no blocks.
  virtual bool recompute_blocks(size_t /*count*/) { return false; }
};

}  // namespace remuda::train

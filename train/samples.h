// Samples: a data set as tensors, independent of the format of its files.
#pragma once

#include <memory>
#include <span>
#include <variant>

#include "base/result.h"
#include "data/image_set.h"
#include "data/token_set.h"
#include "job/train_job.h"
#include "train/model/model.h"
#include "train/torch_compat.h"

namespace remuda::train {

struct Batch {
  torch::Tensor input;   ///< images: [n, channels, height, width] in -1..1; tokens: [n, context] int64
  torch::Tensor target;  ///< images: [n] int64; tokens: [n, context] int64
};

class Samples {
 public:
  static Result<Samples> open(const job::DataSpec& spec, const job::DataFiles& files, const job::ModelSpec& model);

  size_t size() const;
  ModelInput model_input() const;
  /// The samples at `indices`, gathered from the mapped files. Floating-point input has type `type`.
  Batch gather(std::span<const uint64_t> indices, torch::ScalarType type) const;

 private:
  Samples(std::variant<data::ImageSet, data::TokenSet> set, int context) : set_(std::move(set)), context_(context) {}
  std::variant<data::ImageSet, data::TokenSet> set_;
  int context_;
};

}  // namespace remuda::train

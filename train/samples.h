// Samples: a data set as tensors, independent of the format of its files.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "data/image_cache.h"
#include "data/loader.h"
#include "job/train_job.h"
#include "train/model/model.h"
#include "train/torch_compat.h"

namespace remuda::train {

struct Batch {
  torch::Tensor input;   ///< images: [n, channels, height, width] of data::ValueTable, or what data.transform gives;
                         ///< tokens: [n, context] int64
  torch::Tensor target;  ///< images: [n] int64; tokens: [n, context] int64
};

class Samples {
 public:
  /// To test with only where the job has such files. `seed` is that of the ways in which images are seen (data.flip,
  /// data.crop).
  static Result<Samples> open(const job::DataSpec& spec, data::Split split, const job::ModelSpec& model,
                              uint64_t seed = 1);

  /// Collective, before samples are read: the ranks of a host keep decoded images in one memory, where they keep any.
  /// A rank that cannot reach the others' keeps its own.
  Result<void> share_cache(comm::Communicator& communicator);

  size_t size() const { return set_->size(); }
  const ModelInput& model_input() const { return input_; }
  const data::Dataset& set() const { return *set_; }
  /// The samples at `indices`, as they are in no epoch. The error names the file that cannot be read.
  Result<Batch> gather(std::span<const uint64_t> indices) const;
  /// A batch of this set, in the memory that it has, which the tensors keep.
  Batch as_tensors(const data::LoadedBatch& batch, uint64_t count) const;

 private:
  Samples(std::unique_ptr<data::Dataset> set, const ModelInput& input) : set_(std::move(set)), input_(input) {}
  std::unique_ptr<data::Dataset> set_;
  data::ImageCache* cache_ = nullptr;  ///< in the set, where it has one
  ModelInput input_;
};

/// The first samples of a set, read once for all the numbers of them that are asked for.
class FirstSamples {
 public:
  explicit FirstSamples(const Samples& samples) : samples_(samples) {}
  /// A file that cannot be read throws.
  Batch operator()(int64_t count);
  /// Frees their memory.
  void forget() { batch_ = {}; }

 private:
  const Samples& samples_;
  Batch batch_;
};

}  // namespace remuda::train

// Batches: this rank's part of each step's samples, made ahead of the step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "data/loader.h"
#include "train/batch_feed.h"
#include "train/samples.h"

namespace remuda::train {

/// Positions are those of data::SampleOrder: a step begins at one, and the last of an epoch may be shorter.
class Batches {
 public:
  struct Options {
    uint64_t seed = 1;
    int global_batch = 0;
    int rank = 0;
    uint64_t end = 0;  ///< nothing is made beyond this position
    int workers = 0;   ///< threads; 0: batches are made when they are asked for
    int unit = 1;      ///< shares are multiples of so many samples; so are parts, except for the end of an epoch
    data::BatchMemory memory = data::plain_memory;
    int least = 1;  ///< samples of a part of the end of an epoch; see balance::apportion()
  };

  /// The samples outlive it.
  Batches(const Samples& samples, const Options& options);

  /// From now on shares are multiples of so many samples, and no part of the end of an epoch has fewer than `least`.
  void set_unit(int unit, int least) { options_.unit = unit, options_.least = least; }
  /// From now on other ranks make the batches.
  void take_from(std::unique_ptr<BatchFeed> feed) { feed_ = std::move(feed); }
  /// Null where each rank makes its own.
  BatchFeed* feed() { return feed_.get(); }

  /// The samples of the step at `position`, over all ranks.
  int step_size(uint64_t position) const;
  /// How many of them each rank takes, where its share of a whole batch is in `shares`.
  std::vector<int> parts(uint64_t position, const std::vector<int>& shares) const;
  /// This rank's part of the step. Those of the two steps after it are expected to have the same shares, and begun. The
  /// error names the file that cannot be read.
  Result<Batch> take(uint64_t position, const std::vector<int>& shares);
  /// How long the last take() took.
  double waited_s() const { return waited_s_; }

 private:
  std::vector<CutStep> steps_from(uint64_t position, const std::vector<int>& shares) const;
  Result<data::LoadedBatch> load(const std::vector<CutStep>& steps);

  const Samples& samples_;
  Options options_;
  data::Loader loader_;
  std::unique_ptr<BatchFeed> feed_;
  double waited_s_ = 0;
};

/// The number of worker threads that a job asks for; where it says nothing, one for each core that this process may use
/// if images have to be decoded or transformed. Otherwise mapped files are read, for which one is enough, beside
/// another device; where the host computes, none: its cores are taken.
int loader_threads(const job::DataSpec& data, bool host_computes);

}  // namespace remuda::train

// BatchFeed: batches that some ranks make for the others (balance::Role::preprocess).
//
// Of each step every maker makes a slice, and sends each rank that takes samples what of it is that rank's. Each pair
// has a channel of its own, so that nobody waits for the others' batches. All ranks ask for the same steps in the same
// order, those that probably come next ahead: they are made and sent while the devices compute, and no more of them are
// in memory than were asked for. A batch has the same bits as one that the rank makes by itself.
//
// A rank that is lost, or silent for longer than the timeout, ends the next take() with an error that names it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/channel.h"
#include "data/loader.h"
#include "train/work_queue.h"

namespace remuda::train {

/// The samples of a step: positions of data::SampleOrder from `first` on, cut into the parts of the ranks.
struct CutStep {
  uint64_t first = 0;
  std::vector<int> parts;

  uint64_t count() const;
  data::Range part(int rank) const;
  bool operator==(const CutStep&) const = default;
};

class BatchFeed {
 public:
  struct Options {
    std::vector<int> makers, takers;  ///< ranks, each once; no rank is both, and some may be neither
    uint64_t seed = 1;
    int workers = 0;           ///< threads of this rank, if it is a maker
    data::BatchMemory memory;  ///< for what this rank takes
  };

  /// Collective. The set outlives it.
  static Result<std::unique_ptr<BatchFeed>> create(comm::Communicator& communicator, const data::Dataset& set,
                                                   const Options& options);

  /// This rank's part of the first of these steps; the others are expected next. The same ones on all ranks. A maker
  /// returns once its slice is made, or cannot be, with an empty part; it is needed until the others have taken theirs.
  Result<data::LoadedBatch> take(std::span<const CutStep> steps);

  /// As Communicator::set_timeout().
  void set_timeout(double seconds);

 private:
  struct Line {
    std::unique_ptr<comm::Channel> channel;  ///< of a maker and one that takes
    std::unique_ptr<WorkQueue> queue;        ///< alone calls it
  };
  struct Delivery {
    data::LoadedBatch batch;
    int missing = 0;  ///< slices
  };
  struct Asked {
    CutStep step;
    std::shared_ptr<Delivery> delivery;
  };
  struct Made {
    data::Range range;
    data::LoadedBatch batch;
  };

  BatchFeed(int rank, const data::Dataset& set, const Options& options) : rank_(rank), set_(set), options_(options) {}
  std::shared_ptr<Delivery> ask(const CutStep& step);
  data::Range slice(const CutStep& step, size_t maker) const;
  Result<data::LoadedBatch> slice_of(data::Range range);
  Result<void> make(const CutStep& step);
  Result<void> pass(comm::Channel& channel, const data::LoadedBatch& batch, data::Range rows);
  void receive(Line& line, const std::shared_ptr<Delivery>& delivery, data::Range rows);
  Result<void> arrived(Delivery& delivery, const Result<void>& outcome);

  const int rank_;
  const data::Dataset& set_;
  const Options options_;
  std::vector<int> weights_;  ///< of each maker: how much of a step it makes
  size_t own_ = 0;            ///< this rank's place among the makers, if it is one
  std::deque<Asked> asked_;   ///< in the order in which they are delivered
  double timeout_s_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  Result<void> outcome_;                  ///< the first error of any thread
  std::vector<Line> lines_;               ///< of a maker: to each that takes; of one that takes: from each maker
  std::unique_ptr<data::Loader> loader_;  ///< a maker's, and what follows too
  std::deque<Made> made_;                 ///< the last ones: a step with other parts has the same slices
  std::unique_ptr<WorkQueue> making_;
};

}  // namespace remuda::train

// Buddy: a copy of what each rank owns, in the memory of another one, so that a rank can be lost without its part.
//
// After each step a rank copies what it owns (ShardedOptimizer::owned()) to memory of its host, and sends the copy to
// the next rank, its buddy, on a channel of the two. A rank may be lost while some have sent the copy of a step and
// others have not; so each rank keeps those of two steps, its own and its buddy's. Whoever has begun the next step
// knows that all have sent that of the last: they all make a step's copy before they report of the next one. The newest
// step whose parts are all there, with their owners or with their buddies, is the one to go back to.
//
// Parts are known by their place in the model: any number of ranks can take up what any other number has copied.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/channel.h"
#include "train/checkpoints.h"
#include "train/device/host_copies.h"
#include "train/device/random_state.h"
#include "train/model/model.h"
#include "train/sharded_optimizer.h"

namespace remuda::train {

/// A range of elements in the copy of a rank's part; the next one follows it. Sent as raw bytes.
struct CopiedRange {
  uint32_t parameter = 0;  ///< its number in Model::parameters()
  uint32_t kind = 0;       ///< its value, its average, or the first, second, ... state of the optimizer
  uint64_t first = 0, count = 0;
};

/// What this rank owns, in the order of its copy.
struct OwnedRange {
  CopiedRange place;
  torch::Tensor values;  ///< on the device
};
std::vector<OwnedRange> owned_ranges(Model& model, ShardedOptimizer& optimizer, const FlatParameters& flat);
/// Of the whole copy.
int64_t elements_of(std::span<const CopiedRange> ranges);

/// The copies that one rank has: what outlives its communicator.
struct Copies {
  static constexpr int64_t kNone = -1;
  struct Part {
    int64_t step = kNone;  ///< so many were made; kNone: not whole
    torch::Tensor values;  ///< in memory of the host
  };
  /// What only the rank itself goes on with.
  struct Own {
    Progress progress;
    std::vector<torch::Tensor> buffers;
    std::optional<RandomState> random;
  };

  int generation = 0;                            ///< of the ranks that made them; see Members
  int rank = 0;                                  ///< among these
  std::vector<std::vector<CopiedRange>> ranges;  ///< of each of them
  std::array<Part, 2> mine, others;              ///< of two steps: this rank's, and those of the rank before it
  std::array<Own, 2> own;                        ///< of the steps of `mine`

  int ranks() const { return static_cast<int>(ranges.size()); }
  int other() const { return (rank + ranks() - 1) % ranks(); }
};

/// Collective, between two steps: of what each rank owns it keeps a copy itself, and no other one does.
Result<std::shared_ptr<Copies>> copies_of_own(comm::Communicator& communicator, int generation, Model& model,
                                              ShardedOptimizer& optimizer, const FlatParameters& flat,
                                              const HostCopies& host, const Progress& progress);

class Buddy {
 public:
  /// Collective, of two ranks or more. Model, optimizer and parameters outlive it.
  static Result<std::unique_ptr<Buddy>> create(comm::Communicator& communicator, int generation, Model& model,
                                               ShardedOptimizer& optimizer, const FlatParameters& flat,
                                               const HostCopies& host);

  /// Collective, between two steps: copies the state as it is.
  Result<void> keep(const Progress& progress);
  /// As Communicator::set_timeout().
  void set_timeout(double seconds);

  const std::shared_ptr<Copies>& copies() const { return copies_; }

 private:
  Buddy(Model& model, const HostCopies& host, std::vector<OwnedRange> owned)
      : model_(model), host_(host), owned_(std::move(owned)), copies_(std::make_shared<Copies>()) {}

  Model& model_;
  const HostCopies host_;
  const std::vector<OwnedRange> owned_;
  std::unique_ptr<comm::Channel> to_next_, from_before_;
  std::shared_ptr<Copies> copies_;
  size_t slot_ = 0;  ///< of the next step
};

struct TakenUp {
  Progress progress;
  std::shared_ptr<Copies> copies;  ///< of which all ranks have gone on; null for one that holds none
};

/// Collective, of all that go on: brings what they own, buffers and generators back to the newest step of which all
/// parts are in some rank's `held`. Nothing where there is no such step. A rank that holds nothing has joined them: it
/// gets rank 0's buffers, and its generators stay as they are.
Result<std::optional<TakenUp>> take_up(comm::Communicator& communicator, std::span<const std::shared_ptr<Copies>> held,
                                       Model& model, ShardedOptimizer& optimizer, const FlatParameters& flat);
/// So many `held` at most.
inline constexpr size_t kMostHeld = 2;

}  // namespace remuda::train

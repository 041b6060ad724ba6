// NormExchange: what the batch norms of all ranks tell each other, so that each normalises the samples of all.
//
// In a step each rank computes its part in pieces. The first pieces of all ranks are normalised together, then the
// second ones, and so on: for each piece every batch norm of the model makes a call in the forward pass and one in the
// backward pass, in an order that was learned from a trial. All ranks make all calls: one that has no such piece, or
// no samples at all, or ran out of memory in the middle of a piece, makes those that are left of it with nothing to
// add. So nobody waits for a call that does not come, and each rank's running statistics count each piece.
//
// One thread at a time, which may be the one that libtorch runs a backward pass on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/wait_hooks.h"

namespace remuda::train {

/// A batch norm, as the exchange needs it.
class NormLayer {
 public:
  virtual ~NormLayer() = default;
  /// Counts a piece of all ranks in the running statistics; see norm_moments.h.
  virtual void count(std::span<const double> moments) = 0;
};

class NormExchange {
 public:
  /// Collective: these calls get a channel of their own, as gradients leave at the same time.
  static Result<std::unique_ptr<NormExchange>> create(comm::Communicator& communicator);
  void set_hooks(WaitHooks hooks) { hooks_ = std::move(hooks); }

  /// Before all else: the model's batch norms, in the same order on all ranks. They live as long as steps are made.
  void add(NormLayer& layer);

  /// Runs one forward and backward pass of this rank by itself, and learns from it the calls of a piece. Statistics do
  /// not count it.
  void learn(const std::function<void()>& trial);
  /// Collective. After learn(): ranks whose calls differ are refused. A rank that ran out of memory in its trial takes
  /// the calls of the others.
  Result<void> agree();

  /// While it lives, batch norms have the samples of this rank alone. `exchange` may be null.
  class Alone {
   public:
    explicit Alone(NormExchange* exchange) : exchange_(exchange), before_(exchange && exchange->alone_) {
      if (exchange_) exchange_->alone_ = true;
    }
    ~Alone() {
      if (exchange_) exchange_->alone_ = before_;
    }
    Alone(const Alone&) = delete;

   private:
    NormExchange* exchange_;
    bool before_;
  };

  /// What this rank's backward passes run on is the loss times this, which may be another number on other ranks.
  void set_loss_scale(double scale) { loss_scale_ = scale; }
  /// Collective. Ends the pieces of a step: makes the calls that are left of this rank's last one, and those of the
  /// pieces that only others have. The error, if any, is that of the first call that failed.
  Result<void> finish();
  /// The error of the first call that failed, which the layers throw too.
  const Result<void>& outcome() const { return outcome_; }
  void set_timeout(double seconds) { communicator_->set_timeout(seconds); }

  /// In a forward pass, by a layer: the moments of the piece of all ranks, from those of this rank's. Throws when the
  /// call fails.
  std::vector<double> add_up_moments(NormLayer& layer, std::vector<double> mine);
  /// In a backward pass: likewise, sums of gradients.
  std::vector<double> add_up_gradients(NormLayer& layer, std::vector<double> mine);

 private:
  /// One of a piece. The same bytes on all ranks.
  struct Call {
    uint32_t layer = 0;
    uint32_t backward = 0;
    uint64_t numbers = 0;
    bool operator==(const Call&) const = default;
  };

  explicit NormExchange(std::unique_ptr<comm::Communicator> communicator) : communicator_(std::move(communicator)) {}
  std::vector<double> join(const Call& call, std::vector<double> mine);
  Result<std::vector<double>> make_next_call(std::span<const double> mine);
  Result<void> make_empty_call();
  Result<bool> meet(bool has_a_piece);
  Result<void> gather(std::span<const std::byte> mine, std::span<std::byte> all, uint32_t label);
  Call call_of(NormLayer& layer, bool backward, size_t numbers) const;

  std::unique_ptr<comm::Communicator> communicator_;
  WaitHooks hooks_;
  std::vector<NormLayer*> layers_;
  std::vector<Call> calls_;  ///< of a piece
  size_t next_ = 0;          ///< of them, in the piece under way; 0 between pieces
  bool learning_ = false, alone_ = false;
  double loss_scale_ = 1;
  Result<void> outcome_;
};

}  // namespace remuda::train

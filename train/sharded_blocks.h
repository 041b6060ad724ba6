// ShardedBlocks: fills the blocks of a model before they compute, and frees them after it.
//
// A pass is a forward pass of the model, with its backward pass where gradients are enabled. Filling a block is
// collective, and so is adding its gradients up: all ranks make all passes, in the same order of calls. Before each
// pass they tell each other whether they have one to make; one that has none, or no samples at all, or that ran out of
// memory in the middle of one, makes the calls that are left with nothing to add. So ranks may compute in any number
// of pieces, and nobody waits for a call that does not come.
//
// In a pass blocks are filled in the order 0, 1, ..., and, with a backward pass, down to 0 again; the last block stays
// for both. There is room for two: while one computes, the next one is fetched. The gradients of a block are added up
// while the one before it computes; the sums of all passes of a step are in ShardedParts::sums(). All collective calls
// are made by the queue's thread, in this order:
//
//   fill 0, 1, ..., n-1 | n-2, add up n-1, fill n-3, add up n-2, ..., fill 0, add up 1, 0
//
// The queue works in the order in which it is given work: so when block b is there for its backward pass, the gradients
// of block b + 2 have left their room, which those of b take.
//
// A call that fails throws in the pass, and is the error of finish(). One thread at a time, which may be the one that
// libtorch runs a backward pass on.
#pragma once

#include <array>
#include <future>
#include <optional>

#include "train/engine.h"
#include "train/model/blocks.h"
#include "train/sharded_parts.h"
#include "train/wait_hooks.h"

namespace remuda::train {

class ShardedBlocks final : public BlockWatch {
 public:
  /// All that is named outlives it. It ends when no pass of the model is under way.
  ShardedBlocks(Engine& engine, ShardedParts& parts, WaitHooks hooks);

  ShardedParts& parts() { return parts_; }
  const ShardedParts& parts() const { return parts_; }

  void before_forward(size_t block) override;
  void after_forward(size_t block) override;
  bool holds(size_t block, const torch::Tensor& output) const override;
  void before_backward(size_t block) override;

  /// What backward passes run on is the loss times this.
  void set_loss_scale(double scale) { loss_scale_ = scale; }
  /// Collective. Ends the passes of a step, or of an evaluation for now: makes the calls that are left of this rank's
  /// last pass, and those of passes that only others have. Nothing is under way then, and no block is filled. The
  /// error, if any, is that of the first call that failed.
  Result<void> finish();
  /// The error of the first call that failed.
  const Result<void>& outcome() const { return outcome_; }

  /// While it lives, passes are made without other ranks, to measure them: what they own of a block is anything.
  /// `blocks` may be null.
  class Alone {
   public:
    explicit Alone(ShardedBlocks* blocks);
    ~Alone();
    Alone(const Alone&) = delete;

   private:
    ShardedBlocks* blocks_;
  };

  /// Collective, where nothing is under way: rank 0 asks for blocks, and the others lend() until it has called
  /// end_lending(), however long that takes. Never more than one block is there at once; until the next call in memory
  /// of the host.
  Result<torch::Tensor> borrow(size_t block);
  Result<void> end_lending();
  Result<void> lend();

 private:
  enum class Pass : char { none, forward, training };
  /// A place for a block.
  struct Room {
    std::future<Moment> filled;  ///< when the device has it
    torch::Tensor memory;        ///< undefined: the block is filled for the others only
  };

  size_t blocks() const { return parts_.blocks(); }
  void begin_pass();
  void start(Pass pass);
  Pass meet(Pass mine);
  void fetch();
  void take(size_t block);
  void release();
  void settle(Room& room);
  void receive_gradients(size_t block);
  void send_gradients(size_t block);
  bool sends_gradients_next() const;
  void make_rest();
  void end_all();
  void drop_gradients();
  /// Waits for work of the queue; throws where it has failed.
  template <typename T>
  T wait_for(std::future<T>& work);
  void fail();

  Engine& engine_;
  ShardedParts& parts_;
  const WaitHooks hooks_;
  Pass pass_ = Pass::none;
  std::vector<size_t> order_;  ///< in which blocks are filled in the pass under way
  /// Of these, how many were asked for and freed again; and of how many blocks the gradients were sent.
  size_t fetched_ = 0, released_ = 0, sent_ = 0;
  bool only_for_others_ = false;  ///< this rank computes no more of the pass
  bool alone_ = false;
  int passes_ = 0;  ///< of the step, with a backward pass
  double loss_scale_ = 1;
  std::array<Room, ShardedParts::kRooms> rooms_;
  std::array<torch::Tensor, ShardedParts::kRooms> gradients_;
  std::optional<size_t> borrowed_;            ///< the block that is there for borrow()
  std::optional<size_t> computes_gradients_;  ///< the block whose gradients are in its room
  Result<void> outcome_;
};

}  // namespace remuda::train

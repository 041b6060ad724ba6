// ShardedParts: what a rank holds of the blocks of a model that is sharded: the parts that it owns, and room for two
// blocks (Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054, stage 3).
//
// At rest there is an image of the own part of each block in memory of the host, which others are sent, and where a
// rank updates on its device also the values themselves there. A block is filled from all ranks' images, by way of room
// in the communicator's memory; on a CPU it lies in that room. Its gradients go the other way: the sums of the own part
// stay, of all passes of a step.
//
// Which block is filled or added up when, and who waits for it, is up to ShardedBlocks.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/device/host_room.h"
#include "train/flat_layout.h"
#include "train/hollow_block.h"
#include "train/update_rule.h"

namespace remuda::train {

/// What it took to fill blocks.
struct GatherCost {
  double bytes = 0;    ///< that came from other ranks
  double seconds = 0;  ///< of the thread that fetches them

  double seconds_per_byte() const { return bytes > 0 ? seconds / bytes : 0; }
};

class ShardedParts {
 public:
  static constexpr size_t kRooms = 2;

  /// Collective. Takes `blocks` over, the parameters of each, on whatever device: gives all ranks rank 0's values, of
  /// which each keeps its own parts. The communicator, `ops` and the layout outlive it.
  static Result<std::unique_ptr<ShardedParts>> create(comm::Communicator& communicator, const DeviceOps& ops,
                                                      const FlatLayout& layout,
                                                      const std::vector<std::vector<torch::Tensor>>& blocks,
                                                      UpdatesOn updates_on);

  size_t blocks() const { return blocks_.size(); }
  HollowBlock& block(size_t block) { return blocks_[block]; }

  /// What this rank owns of a block: where it updates it, and the sums of gradients for that.
  torch::Tensor values(size_t block) const { return narrow(values_, own_[block]); }
  torch::Tensor sums(size_t block) const { return narrow(sums_, own_[block]); }
  const torch::Tensor& all_values() const { return values_; }
  /// Makes what this thread gives the device from now on wait for the sums; once it has done with those before.
  void take_sums();
  /// From now on others are sent what the values are once the device has done what this thread has given it.
  void give_values();

  /// Memory of the device for a block, of which other work of the device may still use what it was before; on a CPU,
  /// its room. For its gradients it is full of zeros.
  torch::Tensor value_memory(size_t block, size_t room) const;
  torch::Tensor gradient_memory(size_t block, size_t room) const;
  /// The moment at which the host has the gradients that are in `memory`, once they are divided by `loss_scale`.
  Moment give_gradients(size_t block, size_t room, const torch::Tensor& memory, double loss_scale) const;

  /// The thread of the queue. Brings a block into its room, and from there to `memory`, where that is apart and
  /// defined, after the moment `since`: at the moment it returns. `alone`: without other ranks, whose parts are
  /// anything.
  Result<Moment> fill(size_t block, size_t room, const torch::Tensor& memory, const Moment& since, bool alone);
  /// The thread of the queue. Adds the gradients up that the room has from `given` on, or zeros where `is_empty`; to
  /// what is there already unless `is_first`.
  Result<void> add_up(size_t block, size_t room, const Moment& given, bool is_empty, bool is_first);
  /// The thread of the queue: of the sums.
  double square_norm() const;
  /// What the room has of a block since it was filled.
  torch::Tensor in_room(size_t block, size_t room) const;

  /// When nothing is under way: of a trial before the first pass, and of all passes since.
  const GatherCost& trial_cost() const { return trial_cost_; }
  const GatherCost& cost() const { return cost_; }
  /// That a pass gets from other ranks, forward and backward.
  double bytes_per_pass() const;
  size_t largest_block_bytes() const;
  void set_timeout(double seconds) { timeout_s_ = seconds; }

  /// In memory of the communicator.
  size_t room_bytes() const;
  /// What is kept between steps where this rank updates: values and sums.
  size_t value_bytes() const { return values_.nbytes(); }
  size_t sum_bytes() const { return sums_.nbytes(); }
  bool is_on_host() const { return values_.is_cpu(); }

 private:
  ShardedParts(comm::Communicator& communicator, const DeviceOps& ops, const FlatLayout& layout,
               std::vector<HostRoom> rooms, torch::ScalarType type);
  Result<void> take_over(const std::vector<std::vector<torch::Tensor>>& blocks);
  /// Of a block's elements, those of this rank.
  comm::Chunk part(size_t block) const { return layout_.parts(layout_.bucket_of_block(block)).of(rank_); }
  const torch::Tensor& room_for_values(size_t room) const { return rooms_[room].tensor(); }
  const torch::Tensor& room_for_gradients(size_t room) const { return rooms_[kRooms + room].tensor(); }

  comm::Communicator& communicator_;
  const DeviceOps& ops_;
  const FlatLayout& layout_;
  const int rank_;
  std::vector<HollowBlock> blocks_;
  std::vector<comm::Chunk> own_;  ///< of each block: where this rank's part lies in what follows
  torch::Tensor values_, sums_;
  std::vector<HostRoom> rooms_;        ///< first those for values
  HostRoom image_, sums_on_host_;      ///< `values_` and `sums_` themselves, where these are on the host
  Moment given_;                       ///< when the image has the values
  std::array<Moment, kRooms> copied_;  ///< when the device has the last block of the room
  GatherCost trial_cost_, cost_;
  double timeout_s_ = comm::ConnectOptions().timeout_s;
};

}  // namespace remuda::train

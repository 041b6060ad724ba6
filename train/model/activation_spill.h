// ActivationSpill: what operators of a forward pass keep for backward() lies in memory of the host meanwhile, and comes
// back to the device shortly before it is needed. What activations take of the device then no longer grows with the
// depth of the model.
//
// libtorch asks its autograd engine, each time an operator saves a tensor, whether somebody wants to keep it in another
// way; an engine of our own says yes while a Scope is there. What is moved is the memory behind a tensor, as a whole:
// views of it, and tensors that several operators save, travel once. Parameters, buffers and what is small stay.
//
//   forward    operator -> copy to the host, in the stream for copies; the device's memory is free again two copies
//   later backward   the copies to the device are a few ahead of what is computed
//
// Only copies of the device's own stream for copies touch that memory of the host, in the order in which they were
// given, so it can be used again at once.
//
//   ActivationSpill spill(ops);
//   {
//     const ActivationSpill::Scope scope(&spill, kept);
//     scores = model.forward(input);
//   }
//   loss(scores).backward();
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "train/device/device_ops.h"
#include "train/device/device_timer.h"
#include "train/device/host_room.h"

namespace remuda::train {

/// Of all passes so far.
struct SpillCost {
  int passes = 0;                ///< forward
  double bytes = 0;              ///< that went to the host; all that backward() needs of them comes back
  std::optional<double> wait_s;  ///< that the device waited for copies; where this libtorch can take its times
};

class ActivationSpill {
 public:
  /// Smaller ones stay on the device: to copy them costs more than their room is worth.
  static constexpr size_t kLeastBytes = 256 << 10;

  /// On a CPU nothing moves. From the first one on this process has an engine of its own in place of libtorch's.
  explicit ActivationSpill(const DeviceOps& ops, size_t least_bytes = kLeastBytes);
  /// Waits for copies. No graph of a pass is left by then.
  ~ActivationSpill();
  ActivationSpill(const ActivationSpill&) = delete;

  /// While it lives, what operators of this thread save is moved. A pass of its own: backward() of the one before has
  /// ended, or will not come.
  class Scope {
   public:
    /// `kept`: whose memory stays, as parameters and buffers. Without a spill it does nothing.
    Scope(ActivationSpill* spill, const std::vector<torch::Tensor>& kept);
    ~Scope();
    Scope(const Scope&) = delete;
  };

  /// The device has done all that it was given.
  void settle();
  /// As of the last settle().
  SpillCost cost() const { return cost_; }
  /// Of a copy to the host and back, as measured now. 0 on a CPU.
  double seconds_per_byte() const;

 private:
  class Hooks;
  struct Item;
  struct Saved;
  friend class SpillEngine;

  void begin(const std::vector<torch::Tensor>& kept);
  bool moves(const torch::Tensor& tensor) const;
  Saved save(const torch::Tensor& tensor);
  torch::Tensor restore(const Saved& saved);
  std::shared_ptr<Item> item_of(const torch::Tensor& tensor);
  std::shared_ptr<Item> move_to_host(const torch::Tensor& tensor);
  std::unique_ptr<HostRoom> take_room(size_t bytes);
  void free_oldest();
  void fetch(Item& item) const;
  void fetch_those_before(size_t index);
  void wait_for(Moment& moment);

  const DeviceOps& ops_;
  const size_t least_bytes_;
  const std::optional<DeviceTimer> timer_;
  std::recursive_mutex mutex_;  ///< backward() runs on a thread of the engine, and whoever frees a graph frees items
  std::vector<std::unique_ptr<HostRoom>> rooms_;  ///< that no item has; before what uses them
  size_t least_rooms_ = 0;                        ///< of those: so few were left over at a time, in this pass
  std::unordered_set<const c10::StorageImpl*> kept_;
  std::vector<std::weak_ptr<Item>> items_;  ///< of this pass, in the order in which they were saved
  std::unordered_map<const c10::StorageImpl*, std::weak_ptr<Item>> by_storage_;
  std::deque<std::weak_ptr<Item>> leaving_;  ///< whose memory of the device waits for the copy of it
  std::vector<std::pair<DeviceTimer::Mark, DeviceTimer::Mark>> waits_;
  SpillCost cost_;
};

}  // namespace remuda::train

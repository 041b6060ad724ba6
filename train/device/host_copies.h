// HostCopies: how copies of a device's state get into memory of the host that keeps them, for buddies and checkpoints.
//
// One after the other, into plain memory, through a detour that the driver makes; or into memory that the driver knows,
// all of them under way together:
//
//   const HostCopies copies(ops, /*pinned=*/true);
//   torch::Tensor kept = copies.room(100, torch::kFloat);
//   copies.copy(kept, values);                              // returns at once
//   REMUDA_TRY(copies.finish("the copy of the state"));     // `kept` has them now
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "train/device/device_ops.h"

namespace remuda::train {

/// Copies mean the same device, whose `ops` outlives them. One thread at a time.
class HostCopies {
 public:
  HostCopies(const DeviceOps& ops, bool pinned) : ops_(&ops), pinned_(pinned && !ops.is_synchronous()) {}

  torch::Device device() const { return ops_->device(); }
  /// Memory for so many values, which may outlive this.
  torch::Tensor room(int64_t count, torch::ScalarType type) const;
  /// The same for memory that the caller has: while the result is held, where copies are pinned.
  std::shared_ptr<void> known(std::span<std::byte> memory) const;

  /// Of one type and size. `to` is in such memory, and `from` anywhere; after what this thread has given the device.
  /// Both stay as they are until finish().
  void copy(const torch::Tensor& to, const torch::Tensor& from) const;
  /// Blocks until all copies are there. Errors as of DeviceOps::wait(), which `what` is for.
  Result<void> finish(const std::string& what) const;

 private:
  const DeviceOps* ops_;
  bool pinned_;
};

}  // namespace remuda::train

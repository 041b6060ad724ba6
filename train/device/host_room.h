// HostRoom: a flat tensor in memory of the host that the device's driver knows, so that copies from and to it need no
// detour; in memory that the communicator reaches, or in plain memory of this rank.
#pragma once

#include <span>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/device/device_ops.h"

namespace remuda::train {

class HostRoom {
 public:
  /// Collective. `count` zeros of type `type`, in memory of the communicator, which outlives it, as `ops` does.
  static Result<HostRoom> create(comm::Communicator& communicator, const DeviceOps& ops, size_t count,
                                 torch::ScalarType type);
  /// The same in plain memory.
  static HostRoom of_its_own(const DeviceOps& ops, size_t count, torch::ScalarType type);
  HostRoom(HostRoom&& other) noexcept;
  HostRoom& operator=(HostRoom&&) = delete;
  /// Waits for copies from and to it.
  ~HostRoom();

  const torch::Tensor& tensor() const { return tensor_; }
  std::span<std::byte> bytes() const;

 private:
  HostRoom(const DeviceOps& ops, torch::Tensor tensor);

  const DeviceOps* ops_;
  torch::Tensor tensor_;
  bool registered_;
};

/// A range of a flat tensor, as collective calls take it; what lies on a device is not to be read here.
comm::Values values_of(const torch::Tensor& tensor, comm::Chunk range);
/// The range itself.
torch::Tensor narrow(const torch::Tensor& tensor, comm::Chunk range);

}  // namespace remuda::train

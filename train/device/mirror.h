// Mirror: a flat tensor on the device, and its image in memory of the host that the communicator reaches.
//
// On a CPU both are the same memory, and nothing is ever copied. Elsewhere ranges are copied by request, in a stream of
// their own: to_host() after what the calling thread has given the device so far, to_device() without delay; join()
// makes what the thread gives the device from then on wait for the copies to it.
//
//   const Moment there = mirror.to_host(range);            // returns at once
//   REMUDA_TRY(ops.wait(there, "a copy", timeout_s));      // mirror.host() has the range now
//   communicator.all_reduce(..., label);
//   mirror.to_device(range);
//   mirror.join();                                         // mirror.device() has it for what is computed next
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "train/device/device_ops.h"
#include "train/device/host_room.h"

namespace remuda::train {

class Mirror {
 public:
  /// Collective. `count` zeros of type `type`. The communicator and `ops` outlive it; its end waits for its copies.
  static Result<Mirror> create(comm::Communicator& communicator, const DeviceOps& ops, size_t count,
                               torch::ScalarType type);

  const torch::Tensor& device() const { return device_; }
  const torch::Tensor& host() const { return host_.tensor(); }
  std::span<std::byte> host_bytes() const { return host_.bytes(); }
  /// A range of them, as collective calls take it; what lies on a device is not to be read here.
  comm::Values host_values(comm::Chunk range) const { return values_of(host(), range); }
  comm::Values device_values(comm::Chunk range) const { return values_of(device(), range); }

  /// Any thread. The moment at which the host has it; of each range, in their order. Of one that is empty: what the
  /// calling thread has given the device so far.
  Moment to_host(comm::Chunk range) const;
  std::vector<Moment> to_host(const std::vector<comm::Chunk>& ranges) const;
  /// One thread at a time. The moment at which the device has it, and all that was copied to it before.
  Moment to_device(comm::Chunk range);
  /// By another thread only when to_device() is not called meanwhile.
  void join();

 private:
  Mirror(const DeviceOps& ops, HostRoom host, torch::Tensor device)
      : ops_(&ops), device_(std::move(device)), host_(std::move(host)) {}

  const DeviceOps* ops_;
  torch::Tensor device_;
  HostRoom host_;   ///< it ends first, and waits for copies
  Moment arrived_;  ///< the last copy to the device
};

}  // namespace remuda::train

// DeviceOps: the streams, events and memory of the device that a rank computes on, whatever its type.
//
// A device other than a CPU works through queues (streams): a call that gives it work returns before the work is done.
// An event marks a point in a stream; a stream, or the host, can wait for it. All of this goes through libtorch's
// neutral interfaces, so that no vendor's header is needed; what those lack is looked up by name in the libraries that
// libtorch has loaded. On a CPU work is done when a call returns, and the functions here do nothing.
//
// One object per rank; any thread, as each names the stream it means.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// A point in a device's work; empty on a CPU, where everything before it is done. Copies mean the same point.
using Moment = std::shared_ptr<c10::Event>;

/// Memory of the host that a driver has refused to register.
struct Refused {
  double bytes = 0;  ///< in all
  std::string why;   ///< what it said first; empty: it refused nothing
};

/// Streams of a device beside that of what it computes: one, in which copies and calls of its maker's library follow
/// each other; or one for copies to the host, one for those to the device and one for the library, which know nothing
/// of each other.
enum class Streams { shared, separate };

class DeviceOps {
 public:
  /// Refuses a device that this libtorch cannot compute on; the error names both. One without a number is the calling
  /// thread's current one, and keeps its number from then on.
  static Result<DeviceOps> open(torch::Device device, Streams streams = Streams::shared);

  torch::Device device() const { return device_; }
  /// Whether work is done when a call returns.
  bool is_synchronous() const { return !guard_; }

  /// What this thread has given the device so far.
  Moment here() const;
  /// Work that this thread gives the device from now on begins after `moment`.
  void after(const Moment& moment) const;
  /// Blocks until `moment` is reached. Errors: the device is lost; `what` is not done within `timeout_s` seconds; what
  /// `look` finds, which is called from time to time.
  Result<void> wait(const Moment& moment, const std::string& what, double timeout_s,
                    const std::function<Result<void>()>& look = {}) const;

  /// Copies in the stream that is kept for such copies, after `since`; `to` and `from` have one type and size, and one
  /// of them lies on the host. Returns when the copy is queued: both must stay as they are until the moment it returns.
  /// Copies of one direction follow each other; those of the other one, and the library, only where `since` says so.
  Moment copy(const torch::Tensor& to, const torch::Tensor& from, const Moment& since) const;

  /// When all copies to the host that were given so far are there.
  Moment copied_to_host() const;

  /// Calls `give` with the stream that is kept for the maker's library, as the thread's current one and as the handle
  /// that its functions have for it; what they put there begins after `since`. The moment when all of it is done.
  Result<Moment> in_library(const std::function<Result<void>(void* stream)>& give, const Moment& since) const;

  /// Blocks until no copy is under way, a few seconds at most: before memory of the host goes away. Never throws.
  void finish_copies() const;

  /// Tells the driver about memory of the host, so that copies from and to it need no detour. Without that, and where
  /// the driver refuses, copies are as right but slower; false then, and it counts as refused(). Undone by
  /// release_host().
  bool register_host(std::span<std::byte> memory) const;
  void release_host(std::span<std::byte> memory) const;
  /// Memory that the driver refused to register, of this object and its copies; nothing on a CPU.
  Refused refused() const;

  /// Whether empty_cache() can do anything: not on a CPU, nor with a libtorch that offers no way to.
  bool has_cache() const;
  /// Gives memory that libtorch's allocator keeps, and no tensor uses, back to the device.
  void empty_cache() const;

  /// All memory of the device, in bytes; of a CPU, this process's part of the machine's, by its cores. 0: not known.
  double memory_bytes() const;
  /// What of it nobody has taken, in bytes; of a CPU, this process's part of what the machine could give. 0: not known.
  double free_bytes() const;

 private:
  struct Refusals {
    std::mutex mutex;
    Refused all;
  };
  struct Kept {
    c10::Stream to_host, to_device, library;
  };
  DeviceOps(torch::Device device, std::optional<c10::impl::VirtualGuardImpl> guard, std::optional<Kept> streams)
      : device_(device), guard_(guard), streams_(streams), refusals_(std::make_shared<Refusals>()) {}

  torch::Device device_;
  std::optional<c10::impl::VirtualGuardImpl> guard_;  ///< none on a CPU
  std::optional<Kept> streams_;
  std::shared_ptr<Refusals> refusals_;
};

}  // namespace remuda::train

// DeviceTimer: how long a device takes for the work that it is given, and the ranges that its maker's profiler shows.
//
// Both come from what libtorch has for its own profiler (torch::profiler::impl::ProfilerStubs): CUDA and ROCm offer it.
//
//   const auto timer = DeviceTimer::of(device);
//   const DeviceTimer::Mark from = timer->mark();
//   y = x.mm(w);
//   const DeviceTimer::Mark to = timer->mark();
//   timer->seconds(from, to);                       // waits until the device is there
#pragma once

#include <memory>
#include <optional>

#include "profile/recorder.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// Copies are the same. Any thread.
class DeviceTimer {
 public:
  /// A point in the work of a stream.
  using Mark = std::shared_ptr<void>;

  /// None for a CPU, and where this libtorch has no timed events for the device.
  static std::optional<DeviceTimer> of(torch::Device device);

  /// After what this thread has given the device's current stream so far.
  Mark mark() const;
  /// From one mark to another of the same stream. Blocks until the device has passed both.
  double seconds(const Mark& from, const Mark& to) const;

 private:
  explicit DeviceTimer(torch::Device device) : device_(device) {}

  torch::Device device_;
};

/// Those of NVTX or ROCTX, which Nsight Systems and rocprof show; none where this libtorch has neither.
profile::Ranges profiler_ranges();

}  // namespace remuda::train

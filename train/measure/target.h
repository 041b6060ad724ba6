// Target: how the devices of one rank are measured. One kind for CPU devices, one for GPUs.
#pragma once

#include <memory>
#include <optional>

#include "device/inventory.h"
#include "measure/plan.h"

namespace remuda::train {

struct DeviceFigures {
  MeasuredDevice measured;
  std::optional<double> memory_copy_gbps;  ///< a copy within the device's own memory, by its own cores
};

/// Called in the order of the plan's phases, and only for those in which the rank takes part. Devices are positions in
/// Plan::devices. An error is one sentence that says why there is no figure; library exceptions may be thrown, too.
class Target {
 public:
  virtual ~Target() = default;
  virtual Result<DeviceFigures> device(size_t device) = 0;
  /// 10^9 bytes/s copied from the peer's memory to the device's.
  virtual Result<double> pull_gbps(size_t device, size_t peer) = 0;
  /// Half of the round trip of 8 bytes between the two. For two CPU devices both ranks call it at the same time; only
  /// the result of the rank of `device` counts.
  virtual Result<double> latency_us(size_t device, size_t peer) = 0;
};

/// For the one CPU device of the rank. Touches its memory first, so that it is near the device's cores.
Result<std::unique_ptr<Target>> make_cpu_target(const measure::Plan& plan, int rank);

/// For the GPUs of the rank, through libtorch. When libtorch cannot use them, each figure is an error that says why.
std::unique_ptr<Target> make_accelerator_target(const measure::Plan& plan, int rank);

}  // namespace remuda::train

// OperatorWatch: reports each operator that libtorch runs to a recorder.
#pragma once

#include <ATen/record_function.h>

#include "profile/recorder.h"
#include "train/device/device_timer.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// While it lives, operators that its thread runs are recorded, forward and backward; those of threads that libtorch
/// starts for a backward pass of this thread too, each such thread on a track of its own. To be made and destroyed on
/// one thread. The recorder outlives it, and all operators that have begun meanwhile.
///
/// Spans have the times of the thread that runs an operator: where a device computes on its own, that of giving it the
/// work. What the device takes for it is in the recorder's totals, where `timer` is given; its end waits for the device
/// then.
class OperatorWatch {
 public:
  explicit OperatorWatch(profile::Recorder& recorder, std::optional<DeviceTimer> timer = std::nullopt);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;

 private:
  class DeviceTimes;
  struct Watched;
  struct Begun;
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
  static void end(const at::RecordFunction& function, at::ObserverContext* context);
  static at::CallbackHandle add_callback();

  profile::Recorder& to_;
  const std::shared_ptr<DeviceTimes> device_;  ///< null without a timer
  const c10::DebugInfoGuard recorder_;         ///< where the callbacks find it, on threads of libtorch's own too
  const at::CallbackHandle handle_;
};

}  // namespace remuda::train

// OperatorWatch: tells a recorder of each operator that libtorch runs.
#pragma once

#include <ATen/record_function.h>

#include "profile/recorder.h"
#include "train/torch_compat.h"

namespace remuda::train {

/// While it lives, operators that its thread runs are recorded, forward and backward; those of threads that libtorch
/// starts for a backward pass of this thread too, each such thread on a track of its own. To be made and destroyed on
/// one thread. The recorder outlives it, and all operators that have begun meanwhile.
///
/// Times are those of the thread that runs an operator: where a device computes on its own, the time of giving it the
/// work.
class OperatorWatch {
 public:
  explicit OperatorWatch(profile::Recorder& recorder);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;

 private:
  const c10::DebugInfoGuard recorder_;  ///< where the callbacks find it, on threads of libtorch's own too
  const at::CallbackHandle handle_;
};

}  // namespace remuda::train

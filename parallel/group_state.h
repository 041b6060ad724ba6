// What is behind a Group.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "parallel/parallel.h"
#include "train/device/device_ops.h"

namespace remuda::parallel {

struct GroupState {
  std::unique_ptr<comm::Communicator> communicator;
  train::DeviceOps ops;
  std::vector<double> shares;
  double timeout_s;
  bool in_step = false;    ///< gradients may be under way, so that the communicator is not free for other calls
  bool abandoned = false;  ///< a step was left in its middle, so that the ranks are not at the same call any more

  /// Refuses `call`, a collective of the user's, while a step is under way and after one that was left.
  void require_no_step(const char* call) const;
};

}  // namespace remuda::parallel

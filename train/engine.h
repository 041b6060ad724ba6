// Engine: what of a run the parts that exchange gradients and parameters share.
#pragma once

#include <functional>

#include "comm/communicator.h"
#include "train/bucket_exchange.h"
#include "train/flat_parameters.h"
#include "train/work_queue.h"

namespace remuda::train {

class ShardedBlocks;

/// All of it outlives them.
struct Engine {
  comm::Communicator& communicator;  ///< once there are buckets under way, called by `queue` only
  const DeviceOps& ops;
  FlatParameters& flat;
  BucketExchange *sums, *values;  ///< of gradients and of parameters, never null; `queue` alone calls what sends
  WorkQueue& queue;
  std::function<void()> before_send, before_wait;  ///< see ParallelOptions
  double timeout_s = 300;                          ///< longest wait for the device
  ShardedBlocks* blocks = nullptr;                 ///< null where all parameters are whole
  bool waits_for_updates = true;  ///< so that their time is known; false: what follows them waits where it has to
};

}  // namespace remuda::train

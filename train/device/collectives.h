// The collectives of the devices' maker, proved to work on the devices of this run before it relies on them.
//
// A library that works everywhere else can hang or add up wrongly between hosts or cards that are unlike, from some
// size on: it takes other ways for other sizes. So it is tried with one of each, and left alone where one fails.
#pragma once

#include "base/result.h"
#include "comm/connect_devices.h"
#include "train/device/device_ops.h"

namespace remuda::train {

struct CollectivesTrial {
  size_t largest_bytes = 4 << 20;  ///< about what buckets will have
  double connect_timeout_s = 60;
  double timeout_s = 30;     ///< of each size
  bool equal_parts = false;  ///< what has equal parts goes in one call; both kinds of parts are tried then
};

/// Collective. Errors are those of `communicator`, which is also the channel by which ranks agree; all that fails on a
/// device is a reason to go without.
Result<comm::OpenedCollectives> open_collectives(comm::Communicator& communicator, const DeviceOps& ops,
                                                 const CollectivesTrial& trial = {});

}  // namespace remuda::train

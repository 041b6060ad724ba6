// How fast devices exchange buckets by the library of their maker, and how large a bucket should be for that.
//
// A call takes about latency + bytes x time of a byte. In small buckets most of the time is latency; in large ones the
// first has to wait long for its last gradient. A bucket in which the latency is a tenth of the time of its call is
// about as fast as one of any size.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/device_collectives.h"
#include "train/device/device_ops.h"

namespace remuda::train {

/// Of a scatter of sums, and a gather like it.
struct CollectivesSpeed {
  double latency_s = 0, seconds_per_byte = 0;
};

/// In bytes: latency and time of a byte as above, but no less than `least`, and no more than 256 MiB.
double bucket_bytes_by(const CollectivesSpeed& speed, double least);

/// Collective. What rank 0 measures, on all ranks: medians of a few calls of a KiB and of 16 MiB. Zeros, by which a
/// bucket is as small as it may be, where a device has no room for these.
Result<CollectivesSpeed> measure_collectives(comm::Communicator& communicator, comm::DeviceCollectives& collectives,
                                             const DeviceOps& ops, double timeout_s);

}  // namespace remuda::train

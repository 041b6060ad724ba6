// BucketExchange: how buckets of gradients and parameters go from rank to rank.
//
// Through memory of the host, which the communicator reaches (by_host); or between the devices themselves, by the
// library of their maker (by_devices), where comm::open_device_collectives() has found one. Either way a rank ends with
// the sum of the gradients that it owns, and with everybody's parameters. Where one rank computes and owns everything,
// nothing has to go anywhere (by_one).
//
// What is sent is given away by the thread that has computed it, which does not wait; a thread of the engine, the
// WorkQueue's, does the rest, in one order on all ranks.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "comm/device_collectives.h"
#include "train/flat_parameters.h"
#include "train/update_rule.h"

namespace remuda::train {

class BucketExchange {
 public:
  virtual ~BucketExchange() = default;

  /// Before a step: ranks that compute nothing in it, the same on all. What would be their gradients is zero, whatever
  /// is there, and need not be sent.
  virtual void set_silent(const std::vector<bool>&) {}
  /// Whether this rank's gradients go anywhere in this step, so that they must be zero where it has computed none.
  virtual bool speaks() const { return true; }

  /// The moment from which reduce() may send the gradients of this bucket, as this thread has computed them by now.
  virtual Moment give_gradients(size_t bucket) = 0;
  /// The queue's thread. Adds a bucket up over all ranks.
  virtual Result<void> reduce(size_t bucket, const Moment& given) = 0;
  /// The queue's thread: waits for all sums, and gives the squared norm of those that this rank owns, since the last
  /// call.
  virtual Result<double> take_square_norm() = 0;
  /// Makes what this thread gives the device from now on wait for the sums that this rank owns; or, where updates are
  /// on the host, waits until Mirror::host() has them.
  virtual Result<void> take_sums() = 0;

  /// The moments from which gather() may send what this rank owns of each of these buckets: values of the device or,
  /// where updates are on the host, of Mirror::host(). gather() is called for the last one first.
  virtual std::vector<Moment> give_values(comm::Chunk buckets, Mirror& values) = 0;
  /// The queue's thread. Sends this rank's part of a bucket to all, and gets theirs; returns the moment at which the
  /// device has them.
  virtual Result<Moment> gather(size_t bucket, Mirror& values, const Moment& given) = 0;
  /// The queue's thread: waits for all that was gathered.
  virtual Result<void> finish_gather() = 0;
  /// Makes what this thread gives the device from now on wait for what was gathered.
  virtual void take_values(Mirror& values) = 0;

  /// The longest wait for the device and for other ranks.
  virtual void set_timeout(double seconds) = 0;
};

/// All that is named outlives the exchange.
std::unique_ptr<BucketExchange> by_host(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat,
                                        UpdatesOn updates_on);
std::unique_ptr<BucketExchange> by_devices(comm::Communicator& communicator, const DeviceOps& ops, FlatParameters& flat,
                                           comm::DeviceCollectives& collectives, UpdatesOn updates_on);
/// For steps in which one rank alone computes, and owns everything: its gradients and values stay on its device. The
/// others, which are silent, get nothing: their values are those of before.
std::unique_ptr<BucketExchange> by_one(const DeviceOps& ops, FlatParameters& flat, UpdatesOn updates_on, int rank);
/// Each rank's own gradients go to memory of its host, and nothing goes further: somebody else sends it
/// (CompressedOptimizer). Their squared norm is that of all of them.
std::unique_ptr<BucketExchange> kept_on_host(const DeviceOps& ops, FlatParameters& flat);

}  // namespace remuda::train

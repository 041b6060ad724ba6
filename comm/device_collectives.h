// DeviceCollectives: the two large operations of a training step on memory of the devices themselves, by the library
// that the devices' maker offers for it.
//
// Only for ranks that all compute on devices of one maker, each on one of its own, with one version of the library. The
// Communicator stays the channel for everything small, and for what ranks tell each other when the library hangs.
// Nothing is linked: the library is looked for when a run begins, and where it is missing, too old, or fails, all ranks
// go without it, for a reason that all of them know.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "comm/elements.h"
#include "comm/parts.h"

namespace remuda::comm {

/// What a library promises of its results.
struct DevicePromises {
  /// Sums have the bits that a Communicator gives them, in every run.
  bool same_bits = false;
};

/// Every call is collective: all ranks make the same calls in the same order. A call gives the device work in `stream`,
/// the handle that the maker's own functions have for it, and returns as soon as the library has taken it; the values
/// are there when the stream has got past it. The device must be the calling thread's current one. One thread at a
/// time. After an error nothing more can be done but abort().
class DeviceCollectives {
 public:
  /// Ends as abort() does.
  virtual ~DeviceCollectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "NCCL 2.21.5".
  virtual std::string name() const = 0;
  virtual DevicePromises promises() const = 0;

  /// Adds up `values`, float32 or float64, over all ranks, in place; afterwards each rank has the sum in its own part.
  /// What is in the other parts then is not specified.
  virtual Result<void> reduce_scatter(Values values, const Parts& parts, void* stream) = 0;
  /// Every rank's own part goes to all, in place; `parts` are in bytes.
  virtual Result<void> gather_parts(std::span<std::byte> bytes, const Parts& parts, void* stream) = 0;

  /// An error that has come up in work that was taken. For those who wait for it.
  virtual Result<void> check() = 0;
  /// Ends all work that is under way, undone; once it has returned, streams go on. Takes a few seconds at most.
  virtual void abort() = 0;
  /// The longest wait for the library to take a call, from the next one on.
  virtual void set_timeout(double seconds) = 0;
  /// From the next call on, the same on all ranks: whether what has equal parts is one call of the library, which it
  /// may have better algorithms for, in place of a group of calls, one for each part. Sums may be in another order
  /// then.
  virtual void take_equal_parts_at_once(bool on) = 0;
};

}  // namespace remuda::comm

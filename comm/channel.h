// Channel: send and receive between two ranks.
//
// A channel is a communicator of the two (Communicator::split), with connections, memory and call numbers of its own:
// it neither stands in the order of everybody's calls, which a call of two out of many would break, nor waits for them.
// What one sends the other receives: in the same order, of the same size, under the same label. Where they disagree,
// and where one is lost or silent for longer than the timeout, both get an error that names both.
//
//   REMUDA_ASSIGN(const auto channel, Channel::open(communicator, 0, 2, label));   // null on rank 1
//   if (communicator.rank() == 0) REMUDA_TRY(channel->send(bytes, label));
//   if (communicator.rank() == 2) REMUDA_TRY(channel->receive(bytes, label));
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/communicator.h"

namespace remuda::comm {

/// One thread at a time; two channels, or a channel and its communicator, by two threads at the same time.
class Channel {
 public:
  /// Collective, of all ranks of `communicator`; null on those that are none of the two. Outlives it.
  static Result<std::unique_ptr<Channel>> open(Communicator& communicator, int one, int other, uint32_t label);

  /// Any memory. Returns when it may be written over; the other one may not have it yet.
  Result<void> send(std::span<const std::byte> bytes, uint32_t label);
  Result<void> receive(std::span<std::byte> bytes, uint32_t label);

  /// As Communicator::set_timeout().
  void set_timeout(double seconds) { both_->set_timeout(seconds); }

 private:
  explicit Channel(std::unique_ptr<Communicator> both) : both_(std::move(both)) {}
  const std::unique_ptr<Communicator> both_;
};

}  // namespace remuda::comm

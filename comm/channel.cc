#include "comm/channel.h"

#include <array>

namespace remuda::comm {

Result<std::unique_ptr<Channel>> Channel::open(Communicator& communicator, int one, int other, uint32_t label) {
  REMUDA_ASSIGN(std::unique_ptr<Communicator> both, communicator.split(std::array{one, other}, label));
  return both ? std::unique_ptr<Channel>(new Channel(std::move(both))) : nullptr;
}

Result<void> Channel::send(std::span<const std::byte> bytes, uint32_t label) {
  // The root's bytes are only read.
  const std::span<std::byte> sent(const_cast<std::byte*>(bytes.data()), bytes.size());  // NOLINT(*-const-cast)
  return both_->broadcast(sent, both_->rank(), label);
}

Result<void> Channel::receive(std::span<std::byte> bytes, uint32_t label) {
  return both_->broadcast(bytes, 1 - both_->rank(), label);
}

}  // namespace remuda::comm

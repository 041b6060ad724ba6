#include "comm/transport.h"

#include "base/check.h"
#include "comm/wire.h"

namespace remuda::comm {

template <typename Body>
auto TransportCommunicator::collective(Message message, Body body) -> decltype(body(message)) {
  if (failure_) return tl::unexpected(*failure_);
  message.sequence = ++sequence_;
  deadline_s_ = deadline_after(timeout_s_);
  auto result = body(message);
  if (!result) {
    failure_ = result.error();
    peers_.goodbye(failure_->kind == ErrorKind::lost_peer ? failure_->peer : rank(), sequence_);
    hang_up();
  }
  return result;
}

Result<std::span<std::byte>> TransportCommunicator::allocate(size_t bytes) {
  const Message message{.kind = Message::Kind::allocate, .bytes = bytes};
  return collective(message, [&](const Message& m) { return do_allocate(m); });
}

Result<void> TransportCommunicator::all_reduce(std::span<float> values, uint32_t label) {
  const Message message{.kind = Message::Kind::all_reduce_float,
                        .label = label,
                        .bytes = values.size_bytes(),
                        .offset = offset_of(values.data())};
  return collective(message, [&](const Message& m) { return do_all_reduce(m, values); });
}

Result<void> TransportCommunicator::all_reduce(std::span<double> values, uint32_t label) {
  const Message message{.kind = Message::Kind::all_reduce_double,
                        .label = label,
                        .bytes = values.size_bytes(),
                        .offset = offset_of(values.data())};
  return collective(message, [&](const Message& m) { return do_all_reduce(m, values); });
}

Result<void> TransportCommunicator::broadcast(std::span<std::byte> bytes, int root, uint32_t label) {
  REMUDA_CHECK(root >= 0 && root < size(), "the root of a broadcast is a rank of the job");
  const Message message{.kind = Message::Kind::broadcast, .label = label, .bytes = bytes.size(), .root = root};
  return collective(message, [&](const Message& m) { return do_broadcast(m, bytes); });
}

Result<void> TransportCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                               uint32_t label) {
  REMUDA_CHECK(all.size() == mine.size() * size(), "all_gather's output holds every rank's part");
  const Message message{.kind = Message::Kind::all_gather, .label = label, .bytes = mine.size()};
  return collective(message, [&](const Message& m) { return do_all_gather(m, mine, all); });
}

Result<void> TransportCommunicator::barrier(uint32_t label) {
  const Message message{.kind = Message::Kind::barrier, .label = label};
  return collective(message, [&](const Message& m) { return do_barrier(m); });
}

}  // namespace remuda::comm

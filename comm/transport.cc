#include "comm/transport.h"

#include "base/check.h"
#include "comm/wire.h"

namespace remuda::comm {

template <typename Body>
auto TransportCommunicator::collective(Call call, Body body) -> decltype(body(call)) {
  if (failure_) return tl::unexpected(*failure_);
  call.sequence = ++sequence_;
  deadline_s_ = deadline_after(timeout_s_);
  auto result = body(call);
  if (!result) {
    failure_ = result.error();
    peers_.report_failure(failure_->kind == ErrorKind::lost_peer ? failure_->peer : rank(), sequence_);
    hang_up();
  }
  return result;
}

Result<std::span<std::byte>> TransportCommunicator::allocate(size_t bytes) {
  const Call call{.kind = Call::Kind::allocate, .bytes = bytes};
  return collective(call, [&](const Call& c) { return do_allocate(c); });
}

Result<void> TransportCommunicator::all_reduce(std::span<float> values, uint32_t label) {
  const Call call{.kind = Call::Kind::all_reduce_float,
                  .label = label,
                  .bytes = values.size_bytes(),
                  .offset = offset_of(values.data())};
  return collective(call, [&](const Call& c) { return do_all_reduce(c, values); });
}

Result<void> TransportCommunicator::all_reduce(std::span<double> values, uint32_t label) {
  const Call call{.kind = Call::Kind::all_reduce_double,
                  .label = label,
                  .bytes = values.size_bytes(),
                  .offset = offset_of(values.data())};
  return collective(call, [&](const Call& c) { return do_all_reduce(c, values); });
}

Result<void> TransportCommunicator::broadcast(std::span<std::byte> bytes, int root, uint32_t label) {
  REMUDA_CHECK(root >= 0 && root < size(), "the root of a broadcast is a rank of the job");
  const Call call{.kind = Call::Kind::broadcast, .label = label, .bytes = bytes.size(), .root = root};
  return collective(call, [&](const Call& c) { return do_broadcast(c, bytes); });
}

Result<void> TransportCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                               uint32_t label) {
  REMUDA_CHECK(all.size() == mine.size() * size(), "all_gather's output holds every rank's part");
  const Call call{.kind = Call::Kind::all_gather, .label = label, .bytes = mine.size()};
  return collective(call, [&](const Call& c) { return do_all_gather(c, mine, all); });
}

Result<void> TransportCommunicator::barrier(uint32_t label) {
  const Call call{.kind = Call::Kind::barrier, .label = label};
  return collective(call, [&](const Call& c) { return do_barrier(c); });
}

}  // namespace remuda::comm

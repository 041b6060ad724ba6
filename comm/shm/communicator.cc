// all_reduce in place, without a copy: once all ranks have announced the call, rank r adds up part r of all ranks'
// buffers and writes the sum into all of them. Memory traffic: N buffers read once and written once. Its halves do the
// same in two calls: reduce_scatter writes the sum only into the own buffer, gather_parts copies the others' parts.

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"
#include "comm/shm/factory.h"
#include "comm/shm/group.h"
#include "comm/transport.h"

namespace remuda::comm::shm {
namespace {

class ShmCommunicator final : public TransportCommunicator {
 public:
  ShmCommunicator(Mesh& mesh, Origin origin, std::unique_ptr<Group> group)
      : TransportCommunicator(mesh, std::move(origin)), group_(std::move(group)) {}

  std::string transport() const override { return "shared memory"; }
  uint64_t sent_bytes() const override { return 0; }
  std::vector<std::vector<int>> hosts() const override { return {all_ranks(size())}; }

 protected:
  Result<std::span<std::byte>> do_allocate(const Call& call) override;
  Result<void> do_all_reduce(const Call& call, std::span<std::byte> bytes) override;
  Result<void> do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts, std::byte* sum,
                                 const std::vector<bool>& silent) override;
  Result<void> do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) override;
  Result<void> do_broadcast(const Call& call, std::span<std::byte> bytes, int root) override;
  Result<void> do_all_gather(const Call& call, std::span<const std::byte> mine, std::span<std::byte> all) override;
  Result<void> do_barrier(const Call& call) override { return agree_on(call); }
  uint64_t offset_of(const void* values) const override { return group_->offset_of(values); }

 private:
  Patience patience(const Call& call) { return {call, peers(), deadline_s()}; }
  Result<void> agree_on(const Call& call) { return group_->agree_on(patience(call)); }
  Result<void> step(const Call& call) { return group_->step(patience(call)); }

  std::unique_ptr<Group> group_;
};

Result<std::span<std::byte>> ShmCommunicator::do_allocate(const Call& call) {
  REMUDA_TRY(agree_on(call));
  return group_->allocate(patience(call), call.bytes);
}

Result<void> ShmCommunicator::do_all_reduce(const Call& call, std::span<std::byte> bytes) {
  REMUDA_TRY(agree_on(call));
  if (bytes.empty()) return {};
  const Chunk own = even_parts(size(), bytes.size(), 1).of(rank());
  if (own.size() > 0) {
    const std::vector<std::byte*> buffers = group_->on_all(bytes.data() + own.begin);
    add_up(call.type, buffers, buffers, own.size() / size_of(call.type));
  }
  return step(call);
}

Result<void> ShmCommunicator::do_reduce_scatter(const Call& call, std::span<std::byte> bytes, const Parts& parts,
                                                std::byte* sum, const std::vector<bool>& silent) {
  REMUDA_TRY(agree_on(call));
  if (bytes.empty()) return {};
  const Chunk own = parts.of(rank());
  if (own.size() > 0)
    add_up(call.type, group_->on_all(bytes.data() + own.begin, silent), std::span(&sum, 1),
           own.size() / size_of(call.type));
  return step(call);  // until here, others read this rank's buffer
}

Result<void> ShmCommunicator::do_gather_parts(const Call& call, std::span<std::byte> bytes, const Parts& parts) {
  REMUDA_TRY(agree_on(call));
  if (bytes.empty()) return {};
  const std::vector<std::byte*> all = group_->on_all(bytes.data());
  for (int peer = 0; peer < size(); ++peer) {
    const Chunk theirs = parts.of(peer);
    if (peer != rank()) std::memcpy(bytes.data() + theirs.begin, all[peer] + theirs.begin, theirs.size());
  }
  return step(call);
}

Result<void> ShmCommunicator::do_broadcast(const Call& call, std::span<std::byte> bytes, int root) {
  group_->announce(call);
  return group_->pass_on(patience(call), bytes, root, true);
}

Result<void> ShmCommunicator::do_all_gather(const Call& call, std::span<const std::byte> mine,
                                            std::span<std::byte> all) {
  group_->announce(call);
  const auto place = [&](int rank) { return all.subspan(rank * mine.size(), mine.size()); };
  return group_->gather(patience(call), mine, place, true);
}

}  // namespace

Result<std::unique_ptr<Communicator>> make(Mesh& mesh, const Origin& origin) {
  REMUDA_ASSIGN(auto group, Group::make(mesh, mesh.ranks, origin->connect_timeout_s));
  return std::make_unique<ShmCommunicator>(mesh, origin, std::move(group));
}

}  // namespace remuda::comm::shm

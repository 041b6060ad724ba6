#include "comm/connect.h"

#include <fmt/format.h>

#include "base/env.h"
#include "comm/handshake.h"
#include "comm/hosts.h"
#include "comm/rendezvous.h"
#include "comm/shm/factory.h"
#include "comm/tcp/factory.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using Transport = ConnectOptions::Transport;

Result<void> check(const ConnectOptions& options) {
  if (options.size < 1 || options.size > kMaxRanks)
    return usage_error(fmt::format("a job has 1 to {} ranks, not {}", kMaxRanks, options.size));
  if (options.rank < 0 || options.rank >= options.size)
    return usage_error(fmt::format("rank {} is not one of a job of {} ranks", options.rank, options.size));
  if (options.streams < 1 || options.streams > kMaxStreams)
    return usage_error(
        fmt::format("there are 1 to {} streams between two ranks, not {}", kMaxStreams, options.streams));
  if (options.size > 1 && options.secret.empty())
    return usage_error(
        fmt::format("the job has no secret; set {} to the same random text for all ranks", env::secret.name));
  return {};
}

const char* name_of(Transport transport) {
  switch (transport) {
    case Transport::automatic:
      return "any transport";
    case Transport::shared_memory:
      return "shared memory";
    case Transport::tcp:
      return "tcp";
  }
  return "a transport that is unknown here";
}

// Ranks with different transports set would wait for each other in different places.
Result<void> agree_on_transport(const Mesh& mesh, Transport mine, double deadline_s) {
  if (mesh.leads()) {
    for (const int peer : mesh.followers())
      REMUDA_TRY(
          mesh.control[peer].send_all(std::as_bytes(std::span(&mine, 1)), deadline_s, fmt::format("rank {}", peer)));
    return {};
  }
  Transport theirs{};
  const int leader = mesh.leader();
  REMUDA_TRY(mesh.control[leader].recv_all(std::as_writable_bytes(std::span(&theirs, 1)), deadline_s,
                                           fmt::format("rank {}", leader)));
  if (theirs == mine) return {};
  return usage_error(fmt::format("rank {} is set to use {}, rank {} to use {}; they must be the same", mesh.rank,
                                 name_of(mine), leader, name_of(theirs)));
}

// By shared memory, where ranks are on one host. ErrorKind::failed: all have agreed that it must be TCP alone.
Result<std::unique_ptr<Communicator>> share_memory(Mesh& mesh, const Origin& origin) {
  if (origin->transport == Transport::shared_memory || mesh.ranks.size() == 1) return shm::make(mesh, origin);
  const std::string host = origin->host.empty() ? this_host() : origin->host;
  REMUDA_ASSIGN(const Hosts hosts, find_hosts(mesh, host, deadline_after(origin->connect_timeout_s)));
  if (hosts.size() == 1) return shm::make(mesh, origin);
  if (hosts.size() == mesh.ranks.size()) return failed("each rank is alone on its host");
  return shm::make_between_hosts(mesh, hosts, origin);
}

}  // namespace

Result<std::unique_ptr<Communicator>> connect_ranks(ConnectOptions options, std::vector<int> ranks) {
  REMUDA_ASSIGN(Mesh mesh, ranks.size() == 1 ? Result<Mesh>(Mesh(options.rank, options.size, std::move(ranks)))
                                             : connect_mesh(options, std::move(ranks)));
  REMUDA_TRY(agree_on_transport(mesh, options.transport, deadline_after(options.connect_timeout_s)));
  const auto origin = std::make_shared<const ConnectOptions>(std::move(options));
  if (origin->transport != Transport::tcp) {
    auto shared = share_memory(mesh, origin);
    const bool fall_back =
        !shared && shared.error().kind == ErrorKind::failed && origin->transport == Transport::automatic;
    if (!fall_back) return shared;
  }
  return tcp::make(std::move(mesh), origin);
}

Result<std::unique_ptr<Communicator>> connect(ConnectOptions options) {
  REMUDA_TRY(check(options));
  const int size = options.size;
  return connect_ranks(std::move(options), all_ranks(size));
}

}  // namespace remuda::comm

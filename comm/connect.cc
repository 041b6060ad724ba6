#include <fmt/format.h>

#include "base/env.h"
#include "comm/communicator.h"
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
  if (options.size > 1 && options.secret.empty())
    return usage_error(
        fmt::format("the job has no secret; set {} to the same random text for all ranks", env::secret.name));
  return {};
}

Mesh alone() { return {0, 1, std::vector<Link>(1), std::vector<Link>(1)}; }

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
  if (mesh.rank == 0) {
    for (int peer = 1; peer < mesh.size; ++peer)
      REMUDA_TRY(
          mesh.control[peer].send_all(std::as_bytes(std::span(&mine, 1)), deadline_s, fmt::format("rank {}", peer)));
    return {};
  }
  Transport theirs{};
  REMUDA_TRY(mesh.control[0].recv_all(std::as_writable_bytes(std::span(&theirs, 1)), deadline_s, "rank 0"));
  if (theirs == mine) return {};
  return usage_error(fmt::format("rank {} is set to use {}, rank 0 to use {}; they must be the same", mesh.rank,
                                 name_of(mine), name_of(theirs)));
}

// By shared memory, where ranks are on one host. ErrorKind::failed: all have agreed that it must be TCP alone.
Result<std::unique_ptr<Communicator>> share_memory(Mesh& mesh, const ConnectOptions& options) {
  if (options.transport == Transport::shared_memory || options.size == 1)
    return shm::make(mesh, options.connect_timeout_s, options.timeout_s);
  const std::string host = options.host.empty() ? this_host() : options.host;
  REMUDA_ASSIGN(const Hosts hosts, find_hosts(mesh, host, deadline_after(options.connect_timeout_s)));
  if (hosts.size() == 1) return shm::make(mesh, options.connect_timeout_s, options.timeout_s);
  if (static_cast<int>(hosts.size()) == options.size) return failed("each rank is alone on its host");
  return shm::make_between_hosts(mesh, hosts, options.connect_timeout_s, options.timeout_s);
}

}  // namespace

Result<std::unique_ptr<Communicator>> connect(ConnectOptions options) {
  REMUDA_TRY(check(options));
  REMUDA_ASSIGN(Mesh mesh, options.size == 1 ? Result<Mesh>(alone()) : connect_mesh(options));
  REMUDA_TRY(agree_on_transport(mesh, options.transport, deadline_after(options.connect_timeout_s)));
  if (options.transport != Transport::tcp) {
    auto shared = share_memory(mesh, options);
    const bool fall_back =
        !shared && shared.error().kind == ErrorKind::failed && options.transport == Transport::automatic;
    if (!fall_back) return shared;
  }
  return tcp::make(std::move(mesh), options.timeout_s);
}

}  // namespace remuda::comm

#include "workers/ranks.h"

#include "base/env.h"
#include "workers/blas.h"

namespace remuda::workers {

process::Environment torchrun_environment(const TorchrunRank& rank) {
  const std::string own = std::to_string(rank.rank), all = std::to_string(rank.world_size);
  process::Environment environment{
      {env::rank.name, own},
      {env::local_rank.name, own},
      {env::role_rank.name, own},
      {env::group_rank.name, "0"},
      {env::world_size.name, all},
      {env::local_world_size.name, all},
      {env::role_world_size.name, all},
      {env::group_world_size.name, "1"},
      {env::role_name.name, "default"},
      {env::master_addr.name, rank.master},
      {env::master_port.name, std::to_string(rank.master_port)},
      {env::run_id.name, rank.run_id},
      {env::restart_count.name, std::to_string(rank.restarts)},
      {env::max_restarts.name, std::to_string(rank.max_restarts)},
      {env::use_agent_store.name, "False"},
  };
  // From 2.4 on PyTorch uses libuv for its store by default, and fails where it is built without libuv, as Debian's is.
  // The store without libuv is in every build, and serves the ranks of one machine as well.
  if (!env::get(env::use_libuv)) environment.emplace_back(env::use_libuv.name, "0");
  return environment;
}

process::Environment rank_environment(const Rendezvous& rendezvous, int rank, size_t cores) {
  process::Environment environment = torchrun_environment({.rank = rank,
                                                           .world_size = rendezvous.world_size,
                                                           .master_port = rendezvous.port,
                                                           .run_id = rendezvous.run_id,
                                                           .master = rendezvous.master});
  environment.emplace_back(env::secret.name, rendezvous.secret);
  environment.emplace_back(env::transport.name, rendezvous.transport);
  environment.emplace_back(env::omp_num_threads.name, std::to_string(cores));
  environment.emplace_back(env::openblas_num_threads.name, "1");
  if (const char* kernels = openblas_kernels(cpu_features()); kernels && !env::get(env::openblas_coretype))
    environment.emplace_back(env::openblas_coretype.name, kernels);
  return environment;
}

}  // namespace remuda::workers

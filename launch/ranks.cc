#include "launch/ranks.h"

#include "base/env.h"
#include "launch/blas.h"

namespace remuda {

Environment torchrun_environment(const Rendezvous& rendezvous, int rank) {
  const std::string own = std::to_string(rank), all = std::to_string(rendezvous.world_size);
  return {
      {env::rank.name, own},
      {"LOCAL_RANK", own},
      {"ROLE_RANK", own},
      {"GROUP_RANK", "0"},
      {env::world_size.name, all},
      {"LOCAL_WORLD_SIZE", all},
      {"ROLE_WORLD_SIZE", all},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_NAME", "default"},
      {env::master_addr.name, "127.0.0.1"},
      {env::master_port.name, std::to_string(rendezvous.port)},
      {"TORCHELASTIC_RUN_ID", rendezvous.run_id},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
  };
}

Environment rank_environment(const Rendezvous& rendezvous, int rank, size_t cores) {
  Environment environment = torchrun_environment(rendezvous, rank);
  environment.emplace_back(env::secret.name, rendezvous.secret);
  environment.emplace_back(env::transport.name, rendezvous.transport);
  environment.emplace_back("OMP_NUM_THREADS", std::to_string(cores));
  environment.emplace_back("OPENBLAS_NUM_THREADS", "1");
  if (const char* kernels = openblas_kernels(cpu_features()); kernels && !env::get(env::openblas_coretype))
    environment.emplace_back(env::openblas_coretype.name, kernels);
  return environment;
}

}  // namespace remuda

// Ranks: the environment by which the processes of one job find each other and know their rank.
#pragma once

#include <string>
#include <vector>

#include "process/spawn.h"

namespace remuda::workers {

/// One rank of several on this host, in torchrun's terms.
struct TorchrunRank {
  int rank = 0;
  int world_size = 1;
  int master_port = 0;  ///< of rank 0
  std::string run_id;   ///< names the run
  int restarts = 0;     ///< how often the ranks were started again
  int max_restarts = 0;
  std::string master = "127.0.0.1";  ///< where rank 0 is
};

/// What torchrun sets for each process, so that programs written for it run unchanged: one group of ranks on one host.
/// And USE_LIBUV=0, unless the user has set it: PyTorch's store then works in every build.
process::Environment torchrun_environment(const TorchrunRank& rank);

/// What all ranks of a training run on this host share.
struct Rendezvous {
  int world_size = 1;
  int port = 0;                      ///< of rank 0
  std::string run_id;                ///< names the run
  std::string secret;                ///< see make_secret()
  std::string transport;             ///< auto, shm or tcp
  std::string master = "127.0.0.1";  ///< where rank 0 is
};

/// torchrun's variables, remuda's own, and as many threads as the rank has cores: OpenMP gets them all and OpenBLAS
/// one, because two pools on the same cores slow each other down many times over.
process::Environment rank_environment(const Rendezvous& rendezvous, int rank, size_t cores);

}  // namespace remuda::workers

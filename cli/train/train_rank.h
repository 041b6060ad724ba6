// A rank that another launcher has started: torchrun, srun or mpirun, on one host or several.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace remuda::cli {

/// This process's place among the ranks of a run.
struct LaunchedRank {
  std::string launcher;  ///< "torchrun", for messages
  int rank = 0, size = 1, local_rank = 0;
  int local_size = 1;  ///< ranks on this host, as far as the launcher says it
  std::string master_address;
  int master_port = 0;
  std::string run_id;  ///< the same for all ranks
};

/// From the environment; nothing where no launcher has started this process as one of several ranks. A usage error for
/// variables that are none, and where they do not say where rank 0 is.
Result<std::optional<LaunchedRank>> launched_rank();

/// Where the launcher ends more ranks than may be lost when one of them ends, so that no run goes on: that it does, and
/// what does not. Else empty. Pure.
std::string why_not_elastic(const LaunchedRank& rank, int ranks_lost);

/// The first host of Slurm's list: "node[03-07,9],login" -> "node03". Empty for text that is no such list. Pure.
std::string first_host(const std::string& slurm_list);

/// The address of this host that others on the way to `host` see; a usage error where `host` has none, or no way leads
/// there.
Result<std::string> address_towards(const std::string& host);

/// What the ranks of a user prove to each other by: REMUDA_SECRET, or else a file of the user's own in the state
/// folder, made by the first who needs it. Hosts that share no home need the variable.
Result<std::string> users_secret();

}  // namespace remuda::cli

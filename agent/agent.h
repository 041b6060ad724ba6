// The agent: one process for a machine, which has its pool open for all users and speaks to them over a socket.
//
//   it is killed or started anew: jobs go on, in their cgroups; keepers connect again; the next one finds all of them
//   the machine starts anew:      the jobs have ended, and the next agent records that
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/server.h"
#include "base/result.h"
#include "pool/machine_view.h"
#include "spot/poller.h"

namespace remuda::agent {

struct AgentOptions {
  std::string socket;                           ///< its path; the folder is made where there is none
  std::string pool;                             ///< folder of the pool
  pool::ReadMachine read;                       ///< called in a thread of its own, after the first time
  pool::ReadPolicy read_policy;                 ///< likewise
  std::string policy;                           ///< path of its file; empty: there is none
  bool live = true;                             ///< the machine is this one
  pool::ReadAllocations read_allocations;       ///< likewise; none: no other manager is asked
  spot::MakeWatch spot;                         ///< asks the cloud whether it takes the machine away; none: nobody asks
  double spot_every_s = spot::kEvery_s;         ///< how often
  std::vector<std::string> machine;             ///< words by which other subcommands name it; none: the live one
  std::function<void(const std::string&)> say;  ///< sentences for the log
};

/// Serves until SIGTERM or SIGINT. An error where another agent has the pool, or it cannot be opened. The caller has
/// one thread.
Result<void> run_agent(const AgentOptions& options);

}  // namespace remuda::agent

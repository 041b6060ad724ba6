// Shared by the subcommands that work on a pool: the pool of the chosen machine, and texts for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cli/machine.h"
#include "run/caretaker.h"

namespace remuda::cli {

/// Reads the machine that the flags name at each call, with one MachineReader.
pool::ReadMachine reader_of(const MachineFlags& flags);

struct PoolPlace {
  std::string folder;                ///< of the pool
  std::string logs;                  ///< below which logs are that no job names (pool/logs.h)
  std::optional<std::string> agent;  ///< the socket of the agent that has the pool open
  std::string policy;                ///< path of its policy's file; empty: it has none
};
/// Where the pool of that machine is. An error of kind `unavailable` where an agent should have it open and does not
/// answer.
Result<PoolPlace> place_of_pool(const MachineFlags& flags);

/// Opens the pool of that machine, without a change to it.
run::OpenPool opener_of(const MachineFlags& flags);

/// The pool of that machine, cleaned up: jobs whose processes are gone have ended.
Result<run::Caretaker> open_pool(const MachineFlags& flags);

/// Reports on stderr what keeps this user out of the pool for all users, and how to fix that; nothing on a recorded
/// machine.
void note_pool_obstacle(const MachineFlags& flags);

/// For pool::Pool::ended(): more than a pool keeps.
inline constexpr int kAllEnded = 1 << 20;

/// "gpu:0"; the id itself for a device that does not exist.
std::string label_of(const Inventory& inventory, const std::string& id);
/// "gpu:0, gpu:3": what the job holds.
std::string devices_text(const pool::PoolState& state, int64_t job, const Inventory& inventory);

/// The numbers of this user's jobs that have not ended.
Result<std::vector<int64_t>> own_open_jobs(pool::Access& pool);

/// The pool's policy; the one that permits everything where its file is wrong.
pool::Policy policy_or_none(const run::Caretaker& caretaker);

/// What is in use without a lease, by processes or jobs of other pools, and what is drained.
std::vector<place::Held> held_without_job(const run::Caretaker& caretaker, const pool::PoolState& state);

/// The parts of the machine that are held: by the leases of `state`, by jobs of other pools, and by processes that hold
/// no lease.
std::vector<place::Held> held_now(const run::Caretaker& caretaker, const pool::PoolState& state);

}  // namespace remuda::cli

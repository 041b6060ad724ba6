// Admission: what a policy lets users have. Pure; each refusal names the rule and where it stands. admit() and
// check_priority() are internal to pool; the others are also for people who ask why.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "place/held.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::pool {

/// Of an array, so many indices wait at once where a policy limits what waits.
inline constexpr int kMostIndices = 64;

/// Whether the job may enter the queue: its priority, time limit, parts of devices, how many it wants, what it wants of
/// the host, and how many jobs of its user wait. Gives it a time limit, cores and memory of the host where it asks for
/// none and the policy has some; and a time limit and grace time that end together within the longest time. root may
/// have everything.
Result<void> admit(const PoolState& state, Job& job, const Policy& policy);

/// "policy.toml:7": the rule that gave the job, which asked for none, its memory of the host; empty where none did.
std::string giver_of_host_memory(const Job& job, int64_t asked_bytes, const Policy& policy);

/// A usage error where this user may not give a job that priority.
Result<void> check_priority(const Job& job, int priority, const Policy& policy);

/// Why a waiting job may not start now, whatever is free: its user has as many devices, or as much of
/// the host, or has had as many device hours, as the policy permits; empty where it may. Words that change only when
/// something happens.
std::string over_limit(const PoolState& state, const Job& job, const Policy& policy, double now_s);

/// Why a job waits for which no keeper could be started.
inline constexpr const char* kUnkept = "the process that keeps it could not be started, which is tried again";
/// Why a waiting job may not start yet, whatever is free: it is paused, cancelled or no keeper could be started for it,
/// it is to begin later, a job must end before, or the above; empty where it may.
std::string waits_first(const PoolState& state, const Job& job, const Policy& policy, double now_s);

/// The devices that are reserved for others at a time at which the job, started now, might run: for as long as its time
/// limit and grace time, or for ever. They count as held.
std::vector<place::Held> barred_devices(const Job& job, const Inventory& inventory, const Policy& policy, double now_s);

/// When the next waiting job can start on a device from which reservations keep it now; kNever_s where none ever can.
double unbarred_next(const PoolState& state, const Policy& policy, double now_s);

/// "is Slurm's, to be had with srun or sbatch"; with who has it.
std::string text_of(const Allocation& allocation);
/// The devices that other managers give out, which count as held.
std::vector<place::Held> held_by_allocations(const std::vector<Allocation>& allocations);
/// Refuses (never) a job that could be placed only on those.
Result<void> check_not_given_out(const Job& job, const Inventory& inventory,
                                 const std::vector<Allocation>& allocations);

/// The devices that are drained, which count as held.
std::vector<place::Held> held_by_drains(const PoolState& state);

}  // namespace remuda::pool

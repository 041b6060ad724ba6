// What remuda sees, as metrics: /metrics with names of its own, by the rules of Prometheus (base units, ratios from 0
// to 1,
// `_total` on counters). A device is known by its uuid; `gpu` is what people call it. Pure.
//
// What is not known has no sample, and remuda_gpu_reading_missing says why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "monitor/use.h"
#include "policy/policy.h"
#include "pool/state.h"

namespace remuda::monitor {

class IdleJobs;

/// The room on a disk that remuda writes to.
struct DiskRoom {
  std::string folder;  ///< on that disk
  int64_t bytes = 0;   ///< without what is kept for root
  int64_t free_bytes = 0;
};

/// The state of a machine and its pool at one moment.
struct Moment {
  const Inventory& machine;
  const pool::PoolState& pool;                  ///< its leases, and the jobs that hold them
  const LeaseUses& uses;                        ///< of these leases
  size_t waiting = 0;                           ///< jobs in the queue
  std::vector<std::string> used_without_lease;  ///< ids of devices
  std::vector<std::string> used_by_strangers;   ///< ids of devices with a lease, that processes of no job use, too
  const IdleJobs* idle = nullptr;               ///< why jobs idle; null: not known
  const policy::Policy* policy = nullptr;       ///< with its tariffs; null: none
  std::span<const DiskRoom> disks;              ///< those with the history and the pool
  double wall_s = 0;                            ///< when, in seconds since 1970
  /// Whether the agent of the machine answers; nothing: it has none.
  std::optional<bool> agent_answers = std::nullopt;
  std::string agent_silence;  ///< why it does not

  /// Else pool and queue are empty because nobody tells of them, and `uses` are what they were.
  bool knows_pool() const { return agent_answers.value_or(true); }
};

std::string metrics_text(const Moment& moment);

}  // namespace remuda::monitor

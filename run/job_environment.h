// What a job finds in its environment, rank by rank.
#pragma once

#include <string>
#include <vector>

#include "confine/visibility.h"
#include "pool/state.h"

namespace remuda::run {

/// The devices that the job holds, in inventory order.
std::vector<std::string> devices_of(const pool::PoolState& state, int64_t job, const Inventory& inventory);

/// A sentence that names a device that was granted to the job but is missing from the machine, such as one that has
/// failed since; empty where all are present.
std::string missing_device(const pool::PoolState& state, int64_t job, const Inventory& inventory);

/// For a job that runs as one process: its devices, REMUDA_JOB, REMUDA_POOL, REMUDA_POOL_ID, REMUDA_DEVICES (their
/// ids), REMUDA_DEVICE_CPUS (of each CPU device, as its number would mean other cores to a process bound to them) and
/// REMUDA_SHARES (the part of the work each should get, which for like devices is the same).
confine::Visibility job_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                                    const std::vector<std::string>& devices);

/// REMUDA_ARRAY and REMUDA_ARRAY_INDEX of a job of an array; empty for any other.
process::Environment array_environment(const pool::Job& job);

/// For people: "gpu:0", "gpu:2"; and "gpu:0, gpu:2".
std::vector<std::string> labels_of(const Inventory& inventory, const std::vector<std::string>& devices);
std::string labels_text(const Inventory& inventory, const std::vector<std::string>& devices);
/// The same with the slowest link of their best ring: "gpu:0, gpu:2 (NV2, 50 GB/s)".
std::string joined_devices_text(const Inventory& inventory, const std::vector<std::string>& devices);

struct Ranks {
  int port = 0;          ///< free, on this machine
  int restarts = 0;      ///< how often the job was started again
  int max_restarts = 0;  ///< at most
  int threads = 0;       ///< of each rank; 0: as the user has set it
  std::string secret;    ///< by which ranks that connect to each other know each other
};
/// The environment of rank `rank`, one rank for each device: it sees only its own device, has the variables that
/// torchrun sets, and knows the ranks' secret and libtorch's type of its device.
confine::Visibility rank_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                                     const std::vector<std::string>& devices, int rank, const Ranks& ranks);

}  // namespace remuda::run

// Logs: what jobs wrote that had nobody to write to, in the pool's folder: logs/JOB.log.
//
// Each belongs to its job's user alone (mode 0600), in a pool for all users, too. So nobody removes those of others:
// every user's own are swept when a job of this kind starts or ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "pool/job.h"

namespace remuda::pool {

std::string pool_log_path(const std::string& folder, int64_t job);

/// Opens it to append to, and makes it where it is not there. Refuses what is no regular file of this user, or has a
/// second name: in a pool for all users others can put one there. To be read, too, so that it can be cut.
Result<Fd> open_pool_log(const std::string& folder, int64_t job);

/// How large the log of a running job may become, and what stays of it then.
inline constexpr int64_t kMostRunningLogBytes = int64_t{1} << 30, kKeptLogBytes = 16 << 20;
/// Where the log is larger than `most_bytes`, its last `kept_bytes` stay, from the beginning of a line, below a line
/// that says so. What is written to it at this very moment may be lost. `log` is one of open_pool_log().
Result<void> cut_log(int log, int64_t most_bytes, int64_t kept_bytes);

struct PoolLog {
  int64_t job = 0;
  int64_t bytes = 0;
};
/// Which of these to remove, ascending: those of jobs so old that the pool forgets them, and all that are older than
/// the newest which have `most_bytes` together. None of a job that has not ended. Pure.
std::vector<int64_t> logs_to_remove(std::vector<PoolLog> logs, const PoolState& state, int64_t most_bytes);

inline constexpr int64_t kMostLogBytes = int64_t{4} << 30;
/// Removes them, as far as they are this user's.
void sweep_logs(const std::string& folder, const PoolState& state);

}  // namespace remuda::pool

// Logs: the output of jobs that write to no terminal, pipe or file of their user, in the pool's folder: logs/JOB.log.
//
// Only its job's user may read and write each (mode 0600), in a pool for all users, too. So no user removes those of
// others: a user's own logs are swept when a job of this kind of that user starts or ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "pool/state.h"

namespace remuda::pool {

std::string pool_log_path(const std::string& folder, int64_t job);

/// Opens the log to append, and makes it where there is none. Refuses anything that is not a regular file of this user
/// with one name: in a pool for all users others can put one there. Also opened for reading, so that it can be cut.
Result<Fd> open_pool_log(const std::string& folder, int64_t job);

/// How large the log of a running job may become, and how much of it is kept then.
inline constexpr int64_t kMostRunningLogBytes = int64_t{1} << 30, kKeptLogBytes = 16 << 20;
/// Where the log is larger than `most_bytes`, keeps its last `kept_bytes`, from the beginning of a line, below a line
/// that says so. Output written during the call may be lost. `log` is one of open_pool_log().
Result<void> cut_log(int log, int64_t most_bytes, int64_t kept_bytes);

struct PoolLog {
  int64_t job = 0;
  int64_t bytes = 0;
};
/// How many logs a user keeps, whatever others submit, and whether or not the pool still remembers the jobs.
inline constexpr size_t kMostLogs = 10'000;
/// Which of these logs of a user to remove, ascending: all but the newest kMostLogs, and all that are older than the
/// newest ones that together have `most_bytes`. Never that of a job that has not ended: `state` has all of this user's.
/// Pure.
std::vector<int64_t> logs_to_remove(std::vector<PoolLog> logs, const PoolState& state, int64_t most_bytes);

inline constexpr int64_t kMostLogBytes = int64_t{4} << 30;
/// Removes logs_to_remove(), as far as they are this user's.
void sweep_logs(const std::string& folder, const PoolState& state);

}  // namespace remuda::pool

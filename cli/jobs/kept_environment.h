// KeptEnvironment: what a job that waits in the background was started with, as the process that starts it
// comes later (agent/revival.h): its environment, the mask of the files that it makes, and its limits.
//
// It is kept beside the job's line (kept_line.h), in the user's own folder, readable by the user alone, until the job
// has ended: by its process, or by the command of its user that cancels it while it has none. Where it ended otherwise,
// as when its process was killed or root cancelled it, until one of the user's next jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/result.h"
#include "run/message.h"

namespace remuda::cli {

struct KeptEnvironment {
  std::vector<std::string> entries;                   ///< "NAME=VALUE"
  mode_t mask = 022;                                  ///< umask(2)
  std::vector<std::pair<uint64_t, uint64_t>> limits;  ///< getrlimit(2), soft and hard, by resource
  bool is_whole = true;                               ///< not kept: no entry was left out, and a login finds it
  bool operator==(const KeptEnvironment&) const = default;
};

/// That of this process, without entries that are no UTF-8.
KeptEnvironment own_environment();
/// Gives this process the mask, and the limits as far as it may have them. The entries are for execve(2).
void take_on(const KeptEnvironment& environment);

/// The numbers of this user's jobs that have not ended.
using OpenJobs = std::function<Result<std::vector<int64_t>>()>;

/// Keeps it from the first message with the job's number on, and removes it at the job's end; true while all of it
/// is kept.
/// Without `environment`, it is kept already. Now and then those of other jobs that have ended are removed, too.
std::function<bool(const run::Message&)> keeper_of(std::optional<KeptEnvironment> environment, std::string pool,
                                                   OpenJobs open_jobs);

/// For jobs of this user, which may have been cancelled while nobody kept them: of those that are not open any more.
void forget_environments(const std::string& pool, const std::vector<int64_t>& jobs, const OpenJobs& open_jobs);

/// A usage error where none was kept.
Result<KeptEnvironment> read_kept_environment(const std::string& pool, int64_t job);

}  // namespace remuda::cli

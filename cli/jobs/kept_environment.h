// KeptEnvironment: what a job that waits in the background was started with, so that it can go on waiting when its
// process was lost, as by a restart of the machine: its environment, and the mask of the files that it makes.
//
// It is kept beside the job's line (kept_line.h), in the user's own folder, readable by the user alone, until the job
// has ended; where its process was killed first, until one of the user's next jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "run/message.h"

namespace remuda::cli {

struct KeptEnvironment {
  std::vector<std::string> entries;  ///< "NAME=VALUE"
  mode_t mask = 022;                 ///< umask(2)
  bool operator==(const KeptEnvironment&) const = default;
};

/// That of this process, without entries that are no UTF-8.
KeptEnvironment own_environment();

/// The numbers of this user's jobs that have not ended.
using OpenJobs = std::function<Result<std::vector<int64_t>>()>;

/// `report`, which also keeps it from the first message with the job's number on, and removes it at the job's end.
/// Without `environment`, it is kept already. Now and then those of other jobs that have ended are removed, too.
std::function<void(const run::Message&)> keeping(std::optional<KeptEnvironment> environment, std::string pool,
                                                 OpenJobs open_jobs, std::function<void(const run::Message&)> report);

/// A usage error where none was kept.
Result<KeptEnvironment> read_kept_environment(const std::string& pool, int64_t job);

}  // namespace remuda::cli

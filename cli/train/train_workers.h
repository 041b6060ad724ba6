// The workers of a training run: one `remuda-train` per device, ready to be supervised.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "job/train_job.h"
#include "workers/rendezvous.h"
#include "workers/watched_rank.h"

namespace remuda::cli {

/// The path of remuda-train, which is in the folder of the running program. Builds without libtorch do not have it; the
/// error says so.
Result<std::string> worker_program();

/// One rank per device of the job, on that device's cores; each reads the job's text. Rank 0 inherits the listener's
/// socket and, unless -1, `trace_fd`, where it writes the times of each step; both must stay open until the ranks have
/// started.
Result<std::vector<workers::RankSpec>> worker_ranks(const std::string& program, const job::ParsedJob& job,
                                                    const Inventory& inventory, const workers::Listener& listener,
                                                    const std::string& transport, int trace_fd = -1);

}  // namespace remuda::cli

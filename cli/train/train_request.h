// Training that asks for devices: `remuda train job.toml -n 2` is `remuda run -n 2 -- remuda train job.toml`, so that
// queue, lease, log and cancellation are those of any job.
#pragma once

#include <string>
#include <vector>

#include "cli/train/train_flags.h"
#include "cli/train/train_lease.h"
#include "cli/train/train_rank.h"
#include "job/train_job.h"

namespace remuda::cli {

/// What [placement] asks for, with what the command line says in place of it.
RequestFlags merged(const job::PlacementSpec& file, const RequestFlags& line);

/// Whether the run asks for devices: by a flag, or by [placement] unless --devices names some; never within a lease,
/// nor as a rank that another launcher has started. A usage error for what does not go together.
Result<bool> asks_for_devices(const TrainFlags& flags, const job::PlacementSpec& file,
                              const std::optional<CallersLease>& lease, const std::optional<LaunchedRank>& rank = {});

/// As make_request(), for the merged flags. What is wrong in the file is named as there.
Result<place::Request> train_request(const TrainFlags& flags, const job::PlacementSpec& file);

/// The command line of that `remuda run`; `self` is the path of this program.
std::vector<std::string> run_line(const TrainFlags& flags, const job::PlacementSpec& file, const std::string& self);

/// Becomes that `remuda run`. Returns only on failure.
Result<int> submit(const TrainFlags& flags, const job::PlacementSpec& file);

}  // namespace remuda::cli

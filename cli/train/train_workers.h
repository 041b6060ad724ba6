// The workers of a training run: one `remuda-train` per rank, ready to be supervised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/listener.h"
#include "base/result.h"
#include "cli/train/train_rank.h"
#include "device/inventory.h"
#include "job/train_job.h"
#include "workers/watched_rank.h"

namespace remuda::cli {

/// The path of remuda-train, which is in the folder of the running program. Builds without libtorch do not have it; the
/// error says so.
Result<std::string> worker_program();

/// What the worker program's libtorch can do.
struct WorkerAbilities {
  std::string libtorch;                ///< its version
  std::vector<std::string> cpu_types;  ///< what it computes in on CPUs: float32, bf16, fp16
};
/// Asks the worker program, which takes about a second. Nothing where there is none, or none that answers.
std::optional<WorkerAbilities> worker_abilities();

/// What all ranks of one run have in common.
struct Workers {
  std::string program;
  std::string transport;
  const Listener& listener;  ///< rank 0 inherits its socket: it must stay open until the ranks have started
  int step_times_fd = -1;    ///< where rank 0 writes the times of each step; the same holds for it
  bool live = true;          ///< the machine is this one: ranks are bound to its cores
  int claim_fd = -1;         ///< of checkpoint::Claim: all ranks inherit it, and take none of their own
};

/// One rank for each [[device]] of the job, with the job's text. It sees its own device and no other, knows by
/// REMUDA_TORCH_DEVICE what libtorch calls it, and has the cores of confine::rank_cores().
Result<std::vector<workers::RankSpec>> worker_ranks(const Workers& workers, const job::ParsedJob& job,
                                                    const Inventory& inventory);

/// The one rank that joins the run at HOST:PORT, on the device `id`, the only one of `job`.
Result<workers::RankSpec> joining_worker(const Workers& workers, const job::ParsedJob& job, const Inventory& inventory,
                                         const std::string& run, const std::string& id);

/// The one rank that another launcher has started here as one of several, on the device `id`; `job` names a device for
/// each rank, whatever their hosts call them.
Result<workers::RankSpec> launched_worker(const Workers& workers, const job::ParsedJob& job, const Inventory& inventory,
                                          const LaunchedRank& launched, const std::string& id);

}  // namespace remuda::cli

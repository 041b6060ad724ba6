// A training run whose input was read and checked, before anything starts: whatever is wrong with it is said now.
#pragma once

#include <optional>
#include <string>

#include "cli/train/train_flags.h"
#include "cli/train/train_lease.h"
#include "cli/train/train_rank.h"
#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// What the user has written, before its devices are chosen.
struct AskedRun {
  std::string text;  ///< of the job file
  job::TrainJob job;
  std::optional<CallersLease> lease;   ///< the run is within it
  std::optional<LaunchedRank> rank;    ///< this process is one of its ranks, and no more
  std::vector<std::string> allocated;  ///< DeviceRequest::allocated
  std::vector<std::string> granted;    ///< DeviceRequest::granted
  bool asks = false;                   ///< for devices of its own: asks_for_devices()
  std::string join;                    ///< HOST:PORT of the run that this process joins as one rank; empty: of none
};
Result<AskedRun> read_asked(const TrainFlags& flags);

struct CheckedRun {
  job::ParsedJob job;
  Inventory inventory;
  std::string note;  ///< ChosenDevices::note
  std::string own;   ///< as one rank of several: the id of its device; the job then names one for each rank
};
/// With its devices, those of the lease where it is within one; the data and the model are looked at.
Result<CheckedRun> check_run(const TrainFlags& flags, const AskedRun& asked);

/// The same for a run that is to get `count` devices, which are not known yet.
Result<void> check_before_lease(const TrainFlags& flags, const AskedRun& asked, int count);

/// Refuses files to write that are among those that the run reads, or the same, and outputs that cannot be written
/// later.
Result<void> check_outputs(const TrainFlags& flags, const job::TrainJob& job);

}  // namespace remuda::cli

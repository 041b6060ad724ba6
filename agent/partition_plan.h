// PartitionPlan: which partitions of GPUs are to be made for the jobs that wait, or taken away for them. Pure.
//
//   the machine, and a device for each partition that could be made ──> place() ──> those that a job would get
//
// To the scheduler these are devices that are held until they are there. So a job for which one could be made is
// queued, and told what it waits for; and place() chooses size and GPU, as it does among those that are there.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/inventory.h"
#include "device/words.h"
#include "place/held.h"
#include "policy/policy.h"
#include "pool/state.h"

namespace remuda::agent {

/// A machine with the partitions that could be made on it.
class OfferedPartitions {
 public:
  /// Of the GPUs in `gpus` (as for Inventory::resolve), as many of each size as they can have while there are none.
  OfferedPartitions(Inventory machine, std::vector<std::string> gpus);

  const Inventory& machine() const { return machine_; }
  const std::vector<std::string>& gpus() const { return gpus_; }
  struct Offer {
    std::string device;  ///< its id in machine()
    std::string gpu, profile;
    bool is_free = false;  ///< there is room for it beside the partitions that are there
  };
  const std::vector<Offer>& offers() const { return offers_; }
  /// All of them, as what is not there yet.
  std::vector<place::Held> held() const;

 private:
  Inventory machine_;
  std::vector<std::string> gpus_;
  std::vector<Offer> offers_;
};

struct PartitionChange {
  enum class What {
    make,
    remove,
    settle,  ///< what a process that was killed has left half made or half removed; never planned
  };
  What what = What::make;
  std::string gpu;        ///< UUID of the GPU
  std::string profile;    ///< to make
  std::string partition;  ///< to remove: its UUID
  bool operator==(const PartitionChange&) const = default;
};
}  // namespace remuda::agent

template <>
struct remuda::Words<remuda::agent::PartitionChange::What> {
  using What = agent::PartitionChange::What;
  static constexpr std::array table{std::pair{What::make, "make"}, std::pair{What::remove, "remove"},
                                    std::pair{What::settle, "settle"}};
};

namespace remuda::agent {

/// The next change. `held` is all that is held without a lease; `own` are the agent's partitions, of which those are
/// taken away that nobody has and no process uses: for a job, in the order of turns, that gets none otherwise; or where
/// their GPU is none of `gpus` any more. For jobs behind one that could have a partition and has waited for the
/// policy's patience, none is made. What the driver has `refused` lately holds up nothing else: that partition stays,
/// and on that GPU none is made. Where a GPU is to be settled, nothing is changed on it.
std::optional<PartitionChange> plan_partitions(const pool::PoolState& state, const OfferedPartitions& offered,
                                               const std::vector<place::Held>& held, const std::set<std::string>& own,
                                               const policy::Policy& policy, double now_s,
                                               const std::vector<PartitionChange>& refused = {});

/// The GPUs of which the policy lets the agent make partitions.
std::vector<std::string> cut_by_policy(const policy::Policy& policy);

}  // namespace remuda::agent

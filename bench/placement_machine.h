// A recorded machine for the placement replay: its GPUs by number, with the speeds that the replay assumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "topology/bottleneck.h"

namespace remuda::bench {

using Mask = topology::RingTable::Mask;

struct ReplayMachine {
  std::string name;
  /// The recording, with the assumed speed of each pair as if it were measured: so placement sees the same figures by
  /// which it is judged.
  Inventory inventory;
  std::vector<size_t> gpus;              ///< positions in inventory.devices
  std::vector<std::vector<int>> points;  ///< of each pair, for the pair score (placement_policy.h)
  std::vector<double> ring_gbps;         ///< by mask: the slowest link of the best ring; infinite for one GPU
  std::vector<double> best_gbps;         ///< by number of GPUs: the best on the empty machine

  size_t size() const { return gpus.size(); }
  Mask all() const { return (Mask{1} << size()) - 1; }
};

/// GB/s: NVn and XGn 25 n, PIX 24, PXB 22, PHB 18, NODE 16, SYS 10, but 14 when both ends print the same CPUs.
/// Those of testdata/machines with 2 to 16 whole GPUs all of whose links are known, by name.
Result<std::vector<ReplayMachine>> replay_machines(const std::string& folder);

}  // namespace remuda::bench

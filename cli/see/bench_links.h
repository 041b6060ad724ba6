// `remuda bench links`: starts the ranks of a plan (measure/plan.h), receives their events, stores and prints the
// figures.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.h"
#include "device/inventory.h"

namespace remuda::cli {

struct BenchLinksFlags {
  std::vector<std::string> devices;  ///< by any of their names; all when empty
  double seconds = 6;
  bool json = false;
  MachineFlags machine;
};

/// The exit status: 0, 1 when something could not be measured, 128 + signal when stopped; then nothing is stored.
Result<int> bench_links(const BenchLinksFlags& flags);

/// The devices named, each once, in the order of the inventory; without names all except partitioned GPUs, which cannot
/// be used whole. An error names the device that does not exist, or is named twice.
Result<std::vector<const Device*>> devices_to_measure(const Inventory& inventory,
                                                      const std::vector<std::string>& names);

}  // namespace remuda::cli

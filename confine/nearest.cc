#include "confine/nearest.h"

#include <algorithm>
#include <set>

namespace remuda::confine {

process::Affinity nearest_cores(const Inventory& inventory, const std::vector<std::string>& granted,
                                const std::vector<int>& allowed) {
  std::set<int> cores, nodes;
  bool all_cores = granted.empty();
  for (const std::string& id : granted) {
    const Device* device = inventory.find(id);
    if (!device || !device->cores.has_value())
      all_cores = true;
    else
      cores.insert(device->cores.value().begin(), device->cores.value().end());
    if (device && device->numa_node.has_value() && device->numa_node.value() >= 0)
      nodes.insert(device->numa_node.value());
  }
  process::Affinity result{{}, {nodes.begin(), nodes.end()}};
  if (all_cores) return result;
  std::ranges::copy_if(allowed, std::back_inserter(result.cores), [&](int core) { return cores.contains(core); });
  return result;
}

}  // namespace remuda::confine

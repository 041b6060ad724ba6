#include "place/held.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::place {
namespace {

std::string holder_of(const std::vector<const Process*>& processes) {
  const Process& first = *processes.front();
  std::string text = fmt::format("{} (process {}", first.user.value_or("somebody"), first.pid);
  if (first.command.has_value()) text += ": " + first.command.value();
  if (processes.size() > 1) text += fmt::format(", and {} more", processes.size() - 1);
  return text + ")";
}

/// Whether all processes of a partitioned GPU are listed with its partitions.
bool is_listed_by_partitions(const Inventory& inventory, const Device& gpu) {
  bool any = false, all = true;
  for (const Device& device : inventory.devices) {
    if (device.parent != gpu.id) continue;
    any = true;
    all = all && device.status.processes.has_value();
  }
  return any && all;
}

}  // namespace

std::vector<Held> held_by_processes(const Inventory& inventory) {
  std::vector<Held> held;
  for (const Device& device : inventory.devices) {
    if (!device.status.processes.has_value() || is_listed_by_partitions(inventory, device)) continue;
    std::vector<const Process*> computing;
    std::optional<double> since_s;
    for (const Process& process : device.status.processes.value()) {
      if (process.type == "graphics") continue;
      computing.push_back(&process);
      if (process.start_time_s.has_value())
        since_s = std::min(since_s.value_or(process.start_time_s.value()), process.start_time_s.value());
    }
    if (!computing.empty()) held.push_back({device.id, 1, holder_of(computing), since_s, std::nullopt});
  }
  return held;
}

}  // namespace remuda::place

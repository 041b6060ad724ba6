#include <algorithm>
#include <fmt/format.h>

#include "doctor/checks/checks.h"

namespace remuda::doctor {
namespace {

std::vector<const Device*> partitions_of(const Device& gpu, const Inventory& inventory) {
  std::vector<const Device*> parts;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::partition && device.parent == gpu.id) parts.push_back(&device);
  return parts;
}

bool is_idle(const Device* device) {
  return device->status.processes.has_value() && device->status.processes.value().empty();
}

Diagnosis judge_partitions(const Device& device, const Inventory& inventory) {
  if (!device.partitioned.has_value()) return skip_for(device.partitioned);
  if (!device.partitioned.value()) return pass("");
  const auto parts = partitions_of(device, inventory);
  const std::string whole = fmt::format("sudo nvidia-smi -i {} -mig 0, which makes it whole again", address(device));
  if (parts.empty())
    return fail(called(device) + " is to be used in partitions and has none, so nothing can use it", whole);
  if (std::ranges::all_of(parts, is_idle))
    return warn(
        fmt::format("{} is cut into {}, and nobody uses any", called(device), counted(parts.size(), "partition")),
        fmt::format("if they are left from earlier: {}", whole));
  return pass("");
}

Diagnosis judge_compute_mode(const Device& device, const Reading<bool>& sharing_daemon) {
  if (!device.compute_mode.has_value()) return skip_for(device.compute_mode);
  const std::string set = fmt::format("sudo nvidia-smi -i {} -c ", address(device));
  if (device.compute_mode.value() == ComputeMode::prohibited)
    return fail(called(device) + " lets no process compute", set + "DEFAULT");
  if (device.compute_mode.value() == ComputeMode::shared && is_nvidia(device.vendor) && sharing_daemon.value_or(false))
    return warn(called(device) + " lets processes go past the sharing daemon (MPS) that runs here",
                set + "EXCLUSIVE_PROCESS");
  return pass("");
}

}  // namespace

Diagnoses check_persistence(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "the driver stays loaded while they are idle", [](const Device& device) {
    if (!device.persistence.has_value()) return skip_for(device.persistence);
    if (device.persistence.value()) return pass("");
    return warn(called(device) + " has persistence off: the first program after a pause waits seconds for the driver",
                fmt::format("sudo systemctl enable --now nvidia-persistenced, or sudo nvidia-smi -i {} -pm 1",
                            address(device)));
  });
}

Diagnoses check_compute_mode(const Inventory& inventory, const HostFacts& facts) {
  return over_gpus(inventory, "each lets processes compute",
                   [&](const Device& device) { return judge_compute_mode(device, facts.sharing_daemon); });
}

Diagnoses check_partitions(const Inventory& inventory, const HostFacts&) {
  return over_gpus(inventory, "none is left in partitions",
                   [&](const Device& device) { return judge_partitions(device, inventory); });
}

Diagnoses check_orphans(const Inventory& inventory, const HostFacts& facts) {
  if (gpus(inventory).empty()) return {no_gpu(inventory)};
  if (!facts.gone_pids.has_value()) return {skip_for(facts.gone_pids)};
  if (!facts.host_pids.value_or(false)) return {skip("process ids are the host's, which are not seen from here")};
  const auto& gone = facts.gone_pids.value();
  return over_gpus(inventory, "each of their processes lives", [&](const Device& device) {
    if (!device.status.processes.has_value()) return skip_for(device.status.processes);
    std::vector<std::string> dead;
    for (const Process& process : device.status.processes.value())
      if (std::ranges::count(gone, process.pid) > 0) dead.push_back(std::to_string(process.pid));
    if (dead.empty()) return pass("");
    return warn(
        fmt::format("{} is held by {} that no longer lives: {}", called(device),
                    dead.size() == 1 ? "a process" : "processes", listed(dead)),
        fmt::format("sudo fuser -v /dev/nvidia* shows who else has it open; then: sudo nvidia-smi --gpu-reset -i {}",
                    address(device)));
  });
}

}  // namespace remuda::doctor

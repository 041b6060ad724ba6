#include "cli/train/train_lease.h"

#include <fmt/format.h>

#include "base/env.h"
#include "base/text.h"
#include "cli/jobs/hold_export.h"
#include "cli/jobs/pool_machine.h"

namespace remuda::cli {
namespace {

Result<std::vector<std::vector<int>>> cpus_of(size_t devices) {
  const std::string text = env::get(env::job_cpus).value_or("");
  std::vector<std::vector<int>> cpus;
  for (const std::string& part : split(text, ';')) {
    auto indices = parse_index_ranges(part);
    if (!indices) break;
    cpus.push_back(std::move(*indices));
  }
  if (cpus.size() == devices) return cpus;
  return usage_error(fmt::format("{} is '{}'; it must be the CPUs of each device in {}, as in 0-3;4-7",
                                 env::job_cpus.name, printable(text), env::job_devices.name));
}

}  // namespace

Result<std::optional<CallersLease>> callers_lease(const MachineFlags& machine) {
  const std::string devices = env::get(env::job_devices).value_or("");
  if (devices.empty() || !env::get(env::job)) return std::nullopt;
  REMUDA_ASSIGN(const PoolPlace own, place_of_pool(machine));
  if (!machine.file.empty() && env::get(env::job_pool) != own.folder) return std::nullopt;
  CallersLease lease{.devices = split(devices, ',')};
  REMUDA_ASSIGN(lease.job, held_job(machine));
  REMUDA_ASSIGN(lease.cpus, cpus_of(lease.devices.size()));
  return lease;
}

Inventory within(const CallersLease& lease, Inventory inventory) {
  Device cpu;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::cpu) cpu = device;
  cpu.memory_bytes = Missing{MissingReason::unsupported, "a part of the machine's"};
  cpu.numa_node = Missing{MissingReason::unsupported, "not known within a lease"};
  std::erase_if(inventory.devices, [](const Device& device) { return device.kind == DeviceKind::cpu; });
  for (size_t i = 0; i < lease.devices.size(); ++i) {
    const auto index = cpu_index(lease.devices[i]);
    if (!index) continue;
    cpu.id = lease.devices[i];
    cpu.index = *index;
    cpu.cores = lease.cpus[i];
    inventory.devices.push_back(cpu);
  }
  return inventory;
}

}  // namespace remuda::cli

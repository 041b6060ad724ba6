#include "cli/train/train_devices.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "base/text.h"
#include "cli/machine.h"

namespace remuda::cli {
namespace {

std::vector<job::DeviceSpec> wanted_devices(const DeviceRequest& request) {
  if (request.line.empty()) return request.file;
  std::vector<job::DeviceSpec> wanted;
  for (const auto& id : request.line) {
    const auto same =
        std::find_if(request.file.begin(), request.file.end(), [&](const auto& d) { return d.use == id; });
    wanted.push_back(same == request.file.end() ? job::DeviceSpec{.use = id} : *same);
  }
  return wanted;
}

std::vector<job::DeviceSpec> all_devices(const Inventory& inventory) {
  std::vector<job::DeviceSpec> all;
  for (const auto& device : inventory.devices) all.push_back({.use = device.id});
  return all;
}

const job::DeviceSpec* first_missing(const std::vector<job::DeviceSpec>& wanted, const Inventory& inventory) {
  for (const auto& device : wanted)
    if (!inventory.find(device.use)) return &device;
  return nullptr;
}

Result<void> refuse_twice(const std::vector<job::DeviceSpec>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (wanted[i].use == wanted[j].use)
        return usage_error(fmt::format("device {} is named twice; each may be used once", wanted[i].use));
  return {};
}

/// The number of CPU devices needed so that all wanted ones exist, or 0 when a missing one is not a CPU device.
int cpu_devices_for(const std::vector<job::DeviceSpec>& wanted, const Inventory& inventory) {
  int count = 0;
  for (const auto& device : wanted) {
    const int index = cpu_index(device.use).value_or(-1);
    if (index < 0 && !inventory.find(device.use)) return 0;
    count = std::max(count, index + 1);
  }
  return count;
}

/// Keeps only the devices on which training runs; refuses a wanted device of another kind.
Result<void> keep_cpus(Inventory& inventory, const std::vector<job::DeviceSpec>& wanted) {
  for (const auto& spec : wanted) {
    const auto device = inventory.resolve(spec.use);
    if (device && (*device)->kind != DeviceKind::cpu)
      return usage_error(
          fmt::format("device {} is no CPU ({}); training runs on CPU devices so far", spec.use, model_text(**device)));
  }
  std::erase_if(inventory.devices, [](const Device& device) { return device.kind != DeviceKind::cpu; });
  return {};
}

std::string host_of(const Inventory& inventory) {
  return inventory.host.empty() ? "this machine" : printable(inventory.host);
}

tl::unexpected<Error> unknown_device(const std::string& id, const Inventory& inventory, const std::string& more = "") {
  std::vector<std::string> known;
  for (const auto& device : inventory.devices) known.push_back(device.id);
  if (known.empty())
    return usage_error(fmt::format("device {} is not there: {} has no CPU devices, on which training runs so far", id,
                                   host_of(inventory)));
  return usage_error(fmt::format("device {} is not on this machine, which has {}{}", id, fmt::join(known, ", "), more));
}

std::string split_note(const std::string& id, size_t nodes, int count) {
  const std::string whose = nodes == 1 ? "one NUMA node, so its" : fmt::format("{} NUMA nodes, so their", nodes);
  return fmt::format("{}: {} cores are split into {} CPU devices", id, whose, count);
}

}  // namespace

Result<ChosenDevices> choose_devices(const DeviceRequest& request, const ProbeMachine& probe) {
  ChosenDevices chosen{.devices = wanted_devices(request)};
  REMUDA_TRY(refuse_twice(chosen.devices));
  REMUDA_ASSIGN(chosen.inventory, probe({.cpu_devices = request.cpu_devices}));
  REMUDA_TRY(keep_cpus(chosen.inventory, chosen.devices));
  if (chosen.devices.empty()) chosen.devices = all_devices(chosen.inventory);
  if (chosen.devices.empty())
    return usage_error(fmt::format("{} has no CPU devices, on which training runs so far", host_of(chosen.inventory)));
  const job::DeviceSpec* missing = first_missing(chosen.devices, chosen.inventory);
  if (!missing) return chosen;

  const std::string id = missing->use;
  const int count = request.cpu_devices == 0 ? cpu_devices_for(chosen.devices, chosen.inventory) : 0;
  if (count == 0) return unknown_device(id, chosen.inventory);
  auto split = probe({.cpu_devices = count});
  if (!split) return unknown_device(fmt::format("cpu:{}", count - 1), chosen.inventory, "; " + split.error().message);
  REMUDA_TRY(keep_cpus(*split, {}));
  if (const job::DeviceSpec* still = first_missing(chosen.devices, *split)) return unknown_device(still->use, *split);
  chosen.note = split_note(id, chosen.inventory.devices.size(), count);
  chosen.inventory = std::move(*split);
  return chosen;
}

}  // namespace remuda::cli

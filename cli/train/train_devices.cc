#include "cli/train/train_devices.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/machine.h"
#include "confine/visibility.h"

namespace remuda::cli {
namespace {

using Specs = std::vector<job::DeviceSpec>;

Specs named(const std::vector<std::string>& names) {
  Specs specs;
  for (const std::string& name : names) specs.push_back({.use = name});
  return specs;
}

std::vector<std::string> labels_of(const Inventory& inventory, bool (*is_wanted)(const Device&)) {
  std::vector<std::string> labels;
  for (const Device& device : inventory.devices)
    if (is_wanted(device)) labels.push_back(device.label());
  return labels;
}

bool is_cpu(const Device& device) { return device.kind == DeviceKind::cpu; }
bool is_other(const Device& device) { return !is_cpu(device); }
bool is_any(const Device&) { return true; }

std::string host_of(const Inventory& inventory) {
  return inventory.host.empty() ? "this machine" : printable(inventory.host);
}

tl::unexpected<Error> unknown_device(const std::string& name, const Inventory& inventory,
                                     const std::string& more = "") {
  const std::vector<std::string> known = labels_of(inventory, is_any);
  const std::string unseen = inventory.unseen();
  return usage_error(fmt::format("device {} is not on this machine, which has {}{}{}", name,
                                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), more,
                                 unseen.empty() ? "" : "; others may be there that cannot be seen (" + unseen + ")"));
}

const job::DeviceSpec* first_missing(const Specs& wanted, const Inventory& inventory) {
  for (const auto& spec : wanted)
    if (!inventory.resolve(spec.use)) return &spec;
  return nullptr;
}

/// The number of CPU devices needed so that all wanted ones exist, or 0 when a missing one is not a CPU device.
int cpu_devices_for(const Specs& wanted, const Inventory& inventory) {
  int count = 0;
  for (const auto& spec : wanted) {
    const int index = cpu_index(spec.use).value_or(-1);
    if (index < 0 && !inventory.resolve(spec.use)) return 0;
    count = std::max(count, index + 1);
  }
  return count;
}

std::string split_note(const std::string& id, size_t nodes, int count) {
  const std::string whose = nodes == 1 ? "one NUMA node, so its" : fmt::format("{} NUMA nodes, so their", nodes);
  return fmt::format("{}: {} cores are split into {} CPU devices", id, whose, count);
}

/// Splits the cores until all wanted devices are there.
Result<void> split_for(const Specs& wanted, const DeviceRequest& request, const ProbeMachine& probe,
                       ChosenDevices& chosen) {
  const job::DeviceSpec* missing = first_missing(wanted, chosen.inventory);
  if (!missing) return {};
  const int count = request.cpu_devices == 0 ? cpu_devices_for(wanted, chosen.inventory) : 0;
  if (count == 0) return unknown_device(missing->use, chosen.inventory);
  auto split = probe({.cpu_devices = count});
  if (!split) return unknown_device(fmt::format("cpu:{}", count - 1), chosen.inventory, "; " + split.error().message);
  if (const job::DeviceSpec* still = first_missing(wanted, *split)) return unknown_device(still->use, *split);
  chosen.note = split_note(missing->use, labels_of(chosen.inventory, is_cpu).size(), count);
  chosen.inventory = std::move(*split);
  return {};
}

auto names(const Device* device, const Inventory& inventory) {
  return [device, &inventory](const job::DeviceSpec& spec) {
    const auto found = inventory.resolve(spec.use);
    return found && *found == device;
  };
}

/// A device that is granted once has as many ranks as the file names for it.
Specs ranks_of(const std::vector<std::string>& granted, const Specs& file, const Inventory& inventory) {
  Specs specs;
  for (const std::string& id : granted) {
    const auto device = inventory.resolve(id);
    const auto named = device ? std::ranges::count_if(file, names(*device, inventory)) : 0;
    specs.insert(specs.end(), std::max<size_t>(1, named), {.use = id});
  }
  return specs;
}

Result<void> check_shared(const Device& device, const job::DeviceSpec& first, const job::DeviceSpec& next,
                          const std::string& name) {
  if (!first.shared || !next.shared) return usage_error(job::named_twice(name));
  if (device.compute_mode.has_value() && device.compute_mode.value() == ComputeMode::exclusive)
    return usage_error(fmt::format(
        "device {} is in exclusive compute mode, which permits one process: two ranks cannot share it", name));
  return {};
}

/// Each wanted device by its label. The file's first entry for a device says more of its first rank, and so on.
Result<Specs> resolved(const Specs& wanted, const Specs& file, const Inventory& inventory) {
  Specs specs, entries = file;
  for (const auto& spec : wanted) {
    REMUDA_ASSIGN(const Device* device, inventory.resolve(spec.use));
    job::DeviceSpec rank;
    if (const auto own = std::ranges::find_if(entries, names(device, inventory)); own != entries.end()) {
      rank = *own;
      entries.erase(own);
    }
    rank.use = device->label();
    if (const auto first = std::ranges::find(specs, rank.use, &job::DeviceSpec::use); first != specs.end())
      REMUDA_TRY(check_shared(*device, *first, rank, spec.use));
    if (confine::torch_device(*device).empty())
      return usage_error(fmt::format("device {} ({}) is of a kind that libtorch has no name for", rank.use,
                                     printable(model_text(*device))));
    specs.push_back(std::move(rank));
  }
  return specs;
}

/// Where devices with roles are not among the chosen ones: that the run is without those roles. Else empty.
std::string lost_roles(const Specs& file, const ChosenDevices& chosen) {
  Specs left = chosen.devices;
  std::vector<std::string> lost;
  for (const job::DeviceSpec& entry : file) {
    if (entry.role == balance::Role::compute) continue;
    const auto device = chosen.inventory.resolve(entry.use);
    const auto own = std::ranges::find_if(left, [&](const job::DeviceSpec& spec) {
      return device && spec.use == (*device)->label() && spec.role == entry.role;
    });
    if (own == left.end())
      lost.push_back(fmt::format("{} ({})", entry.use, job::role_word(entry.role)));
    else
      left.erase(own);
  }
  if (lost.empty()) return "";
  return fmt::format(
      "the run is without the role of {}, which the file names and the run does not use: a role belongs to the device "
      "of "
      "its [[device]]",
      fmt::join(lost, ", "));
}

Result<ChosenDevices> choose_leased(const DeviceRequest& request, Inventory machine) {
  const CallersLease& lease = *request.lease;
  ChosenDevices chosen{.inventory = request.live ? within(lease, std::move(machine)) : std::move(machine)};
  std::vector<std::string> labels;
  for (const std::string& id : lease.devices) {
    const Device* device = chosen.inventory.find(id);
    if (!device)
      return usage_error(
          fmt::format("job {} holds {}, which is not there any more: see remuda list", lease.job, printable(id)));
    labels.push_back(device->label());
  }
  const Specs wanted =
      request.line.empty() ? ranks_of(lease.devices, request.file, chosen.inventory) : named(request.line);
  for (const auto& spec : wanted) {
    const auto device = chosen.inventory.resolve(spec.use);
    if (!device || std::ranges::find(lease.devices, (*device)->id) == lease.devices.end())
      return usage_error(fmt::format("device {} is not held by job {}, in which this runs and which holds {}", spec.use,
                                     lease.job, fmt::join(labels, ", ")));
  }
  REMUDA_ASSIGN(chosen.devices, resolved(wanted, request.file, chosen.inventory));
  return chosen;
}

Result<ChosenDevices> choose(const DeviceRequest& request, const ProbeMachine& probe) {
  ChosenDevices chosen;
  REMUDA_ASSIGN(chosen.inventory, probe({.cpu_devices = request.cpu_devices}));
  if (request.lease) return choose_leased(request, std::move(chosen.inventory));
  Specs wanted = request.line.empty() ? request.file : named(request.line);
  if (!request.granted.empty()) wanted = ranks_of(request.granted, request.file, chosen.inventory);
  if (wanted.empty()) wanted = named(request.allocated);
  if (wanted.empty()) {
    const std::vector<std::string> others = labels_of(chosen.inventory, is_other);
    wanted = named(labels_of(chosen.inventory, is_cpu));
    if (wanted.empty())
      return usage_error(fmt::format("{} has no CPU device; name others with --devices, or ask for some with -n",
                                     host_of(chosen.inventory)));
    if (!others.empty())
      chosen.note =
          fmt::format("only CPU devices are used: -n asks for {}, --devices names them", fmt::join(others, ", "));
    else if (const std::string unseen = chosen.inventory.unseen(); !unseen.empty())
      chosen.note = fmt::format("only CPU devices are used: others may be there that cannot be seen ({})", unseen);
  }
  REMUDA_TRY(split_for(wanted, request, probe, chosen));
  REMUDA_ASSIGN(chosen.devices, resolved(wanted, request.file, chosen.inventory));
  return chosen;
}

}  // namespace

Result<ChosenDevices> choose_devices(const DeviceRequest& request, const ProbeMachine& probe) {
  REMUDA_ASSIGN(ChosenDevices chosen, choose(request, probe));
  const std::string lost = lost_roles(request.file, chosen);
  if (!lost.empty()) chosen.note += (chosen.note.empty() ? "" : "; ") + lost;
  return chosen;
}

const Device& chosen_device(const Inventory& inventory, const std::string& use) {
  const auto device = inventory.resolve(use);
  REMUDA_CHECK(device.has_value(), "the job's devices were chosen from the inventory");
  return **device;
}

}  // namespace remuda::cli

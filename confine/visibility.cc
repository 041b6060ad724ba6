#include "confine/visibility.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "base/env.h"
#include "base/text.h"
#include "confine/maker.h"

namespace remuda::confine {
namespace {

/// Its number among the GPUs of its maker, in inventory order.
int number_of(const Inventory& inventory, const Device& device) {
  return static_cast<int>(std::ranges::count_if(inventory.devices, [&](const Device& other) {
    return other.kind == DeviceKind::gpu && other.index < device.index && maker_of(other) == maker_of(device);
  }));
}

std::vector<std::string> names(const Inventory& inventory, const std::vector<std::string>& granted, Maker maker) {
  std::vector<std::string> names;
  for (const std::string& id : granted) {
    const Device* device = inventory.find(id);
    if (!device || device->kind == DeviceKind::cpu || maker_of(*device) != maker) continue;
    names.push_back(device->uuid.value_or(std::to_string(number_of(inventory, *device))));
  }
  return names;
}

bool has(const Inventory& inventory, Maker maker) {
  return std::ranges::any_of(inventory.devices, [&](const Device& device) {
    return device.kind != DeviceKind::cpu && maker_of(device) == maker;
  });
}

std::string first_numbers(size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return fmt::format("{}", fmt::join(numbers, ","));
}

/// Up to the first entry that is no device: a runtime takes none from there on. Slurm's word for none is NoDevFiles.
std::string named_devices(const std::string& value) {
  std::string devices;
  for (const std::string& entry : split(value, ',')) {
    if (entry.empty() || entry == "NoDevFiles" || entry == "none" || entry == "void" || entry.starts_with('-')) break;
    devices += (devices.empty() ? "" : ",") + entry;
  }
  return devices;
}

}  // namespace

Visibility visibility(const Inventory& inventory, const std::vector<std::string>& granted) {
  const auto nvidia = names(inventory, granted, Maker::nvidia), amd = names(inventory, granted, Maker::amd);
  Visibility result{{{env::cuda_device_order.name, "PCI_BUS_ID"},
                     {env::rocr_visible_devices.name, fmt::format("{}", fmt::join(amd, ","))}},
                    {env::gpu_device_ordinal.name}};
  // AMD's HIP also reads CUDA_VISIBLE_DEVICES, as numbers among the devices that ROCR left visible, unless
  // HIP_VISIBLE_DEVICES is set: so it must be set where NVIDIA's devices are hidden on the same machine.
  const bool both = !amd.empty() && has(inventory, Maker::nvidia);
  if (both)
    result.set.emplace_back(env::hip_visible_devices.name, first_numbers(amd.size()));
  else
    result.unset.emplace_back(env::hip_visible_devices.name);
  if (amd.empty() || both)
    result.set.emplace_back(env::cuda_visible_devices.name, fmt::format("{}", fmt::join(nvidia, ",")));
  else
    result.unset.emplace_back(env::cuda_visible_devices.name);
  return result;
}

std::string torch_device(const Device& device) {
  if (device.kind == DeviceKind::cpu) return "cpu";
  if (maker_of(device) != Maker::other) return "cuda";
  return device.vendor.starts_with("Intel") ? "xpu" : "";
}

std::optional<VisibleToCaller> visible_to_caller() {
  for (const env::Variable& variable : {env::cuda_visible_devices, env::rocr_visible_devices, env::hip_visible_devices})
    if (const std::string devices = env::get(variable).value_or(""); !devices.empty())
      return VisibleToCaller{fmt::format("{}={}", variable.name, devices), named_devices(devices)};
  return std::nullopt;
}

}  // namespace remuda::confine

#include "device/inventory.h"

#include <algorithm>

namespace remuda {
namespace {

const char* to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
  }
  return "cpu";
}

Json to_json(const Device& device) {
  return {{"id", device.id},
          {"kind", to_string(device.kind)},
          {"model", device.model},
          {"cores", device.cores},
          {"numa_node", to_json(device.numa_node)},
          {"memory_bytes", to_json(device.memory_bytes)}};
}

}  // namespace

const Device* Inventory::find(const std::string& id) const {
  const auto found = std::ranges::find(devices, id, &Device::id);
  return found == devices.end() ? nullptr : &*found;
}

Json to_json(const Inventory& inventory) {
  Json devices = Json::array();
  for (const Device& device : inventory.devices) devices.push_back(to_json(device));
  return {{"version", Inventory::kVersion}, {"host", inventory.host}, {"devices", std::move(devices)}};
}

}  // namespace remuda

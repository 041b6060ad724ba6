// Inventory: everything known of one machine's devices. Plain data; everything later reads it.
//
// The same JSON is what `remuda list --json` prints. Version 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/reading.h"

namespace remuda {

enum class DeviceKind { cpu };

struct Device {
  std::string id;  ///< what users type: cpu:0
  DeviceKind kind = DeviceKind::cpu;
  std::string model;       ///< "AMD EPYC 9654"
  std::vector<int> cores;  ///< logical CPUs whose threads work for the device, ascending
  Reading<int> numa_node;
  Reading<int64_t> memory_bytes;  ///< of the device: for a CPU, its part of its NUMA node's memory
};

struct Inventory {
  static constexpr int kVersion = 1;
  std::string host;
  std::vector<Device> devices;

  const Device* find(const std::string& id) const;
};

Json to_json(const Inventory& inventory);

}  // namespace remuda

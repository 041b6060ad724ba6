// Machines for the tests of this folder.
#pragma once

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/machine_file.h"
#include "place/place.h"

namespace remuda::place {

inline constexpr int64_t kGiB = int64_t{1} << 30;

/// `count` like GPUs of 40 GiB, all on one NUMA node, with unknown links.
inline Inventory make_gpus(int count) {
  Inventory inventory;
  inventory.host = "box";
  for (int i = 0; i < count; ++i) {
    Device gpu{.id = "gpu:" + std::to_string(i), .kind = DeviceKind::gpu, .index = i};
    gpu.vendor = "Acme";
    gpu.model = "Acme A100-SXM4-40GB";
    gpu.compute_capability = "8.0";
    gpu.memory_bytes = 40 * kGiB;
    gpu.numa_node = 0;
    inventory.devices.push_back(gpu);
  }
  return inventory;
}

/// Sets the pair's speed, as if it had been measured.
inline void join(Inventory& inventory, int a, int b, double gbps) {
  inventory.measured_links.push_back({inventory.devices[a].id, inventory.devices[b].id, 0, gbps, {}});
}

inline void join_by(Inventory& inventory, int a, int b, Path path, int nvlinks = 0) {
  Link link{.a = inventory.devices[a].id, .b = inventory.devices[b].id, .path = path};
  link.fabric = nvlinks > 0 ? Fabric::nvlink : Fabric::none;
  if (nvlinks > 0) link.fabric_links = nvlinks;
  inventory.links.push_back(link);
}

inline Inventory recorded_machine(const std::string& name) {
  const std::string path = machine_file(name);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  auto inventory = parse_inventory(text.str(), path);
  EXPECT_TRUE(inventory) << path;
  return inventory ? *inventory : Inventory{};
}

inline std::vector<Held> busy(std::initializer_list<int> gpus) {
  std::vector<Held> held;
  for (const int gpu : gpus) held.push_back({.device = "gpu:" + std::to_string(gpu), .holder = "alice"});
  return held;
}

inline Placement placed(const Inventory& inventory, const Request& request, const std::vector<Held>& held = {}) {
  const auto answer = place(Layout(inventory), request, held);
  EXPECT_TRUE(answer) << answer.error().message;
  if (!answer) return {};
  if (const auto* refusal = std::get_if<Refusal>(&*answer)) {
    ADD_FAILURE() << refusal->sentence;
    return {};
  }
  return std::get<Placement>(*answer);
}

inline std::vector<std::string> placed_on(const Inventory& inventory, const Request& request,
                                          const std::vector<Held>& held = {}) {
  return placed(inventory, request, held).devices;
}

inline Refusal refused(const Inventory& inventory, const Request& request, const std::vector<Held>& held = {}) {
  const auto answer = place(Layout(inventory), request, held);
  EXPECT_TRUE(answer) << answer.error().message;
  if (!answer || !std::holds_alternative<Refusal>(*answer)) {
    ADD_FAILURE() << "it was not refused";
    return {};
  }
  return std::get<Refusal>(*answer);
}

}  // namespace remuda::place

#include "measure/limit.h"

#include <array>
#include <fmt/format.h>

namespace remuda::measure {
namespace {

/// GB/s of one lane, by generation from 1.
constexpr std::array kLaneGbps{2.5 / 8 * 8 / 10,     5.0 / 8 * 8 / 10,     8.0 / 8 * 128 / 130,
                               16.0 / 8 * 128 / 130, 32.0 / 8 * 128 / 130, 64.0 / 8 * 242 / 256};

}  // namespace

std::optional<double> pcie_gbps(int generation, int width) {
  if (generation < 1 || generation > static_cast<int>(kLaneGbps.size()) || width < 1) return std::nullopt;
  return kLaneGbps[static_cast<size_t>(generation) - 1] * width;
}

std::optional<Limit> bus_limit(const Device& device) {
  if (device.kind == DeviceKind::cpu) return std::nullopt;
  const int generation = device.pcie_generation_max.value_or(device.status.pcie_generation.value_or(0));
  const int width = device.status.pcie_width.value_or(device.pcie_width_max.value_or(0));
  const auto gbps = pcie_gbps(generation, width);
  if (!gbps) return std::nullopt;
  return Limit{*gbps, fmt::format("PCIe {} x{}", generation, width)};
}

std::optional<Limit> pair_limit(const Inventory& inventory, const Device& a, const Device& b) {
  const Link* link = inventory.link(a.id, b.id);
  if (link && link->max_gbps.has_value()) return Limit{link->max_gbps.value(), "the link, by its driver"};
  if (link && link->fabric.value_or(Fabric::none) != Fabric::none) return std::nullopt;
  const auto mine = bus_limit(a), other = bus_limit(b);
  if (!mine || !other) return std::nullopt;
  return mine->gbps <= other->gbps ? mine : other;
}

}  // namespace remuda::measure

#include "bench/placement_machine.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "base/file.h"
#include "topology/bandwidth.h"

namespace remuda::bench {
namespace {

struct PathFigure {
  Path path;
  double gbps;
  int points;
};

constexpr PathFigure kPaths[] = {{Path::psb, 24, 60}, {Path::pix, 24, 50},  {Path::pxb, 22, 40},
                                 {Path::phb, 18, 30}, {Path::node, 16, 20}, {Path::sys, 10, 10}};
constexpr double kNearSys = 14, kEachLink = 25;
constexpr int kEachLinkPoints = 100;

struct PairFigures {
  double gbps;
  int points;
};

/// Where a source names only the direct links, the path beneath is NODE for ends near one another and SYS otherwise;
/// the same for PCIe of no known class.
std::optional<PairFigures> pair_figures(const Device& a, const Device& b, const Link& link) {
  const bool near = topology::are_near(a, b);
  const bool has_fabric = link.fabric.value_or(Fabric::none) != Fabric::none;
  Path path = link.path.value_or(has_fabric ? Path::pcie : Path::psb);
  if (!link.path.has_value() && !has_fabric) return std::nullopt;
  if (has_fabric || path == Path::pcie) path = near ? Path::node : Path::sys;
  const auto* figure = std::ranges::find(kPaths, path, &PathFigure::path);
  if (has_fabric) {
    const int links = std::max(1, link.fabric_links.value_or(1));
    return PairFigures{kEachLink * links, kEachLinkPoints * links + figure->points};
  }
  return PairFigures{path == Path::sys && near ? kNearSys : figure->gbps, figure->points};
}

void find_rings(ReplayMachine& machine, const topology::Speeds& speeds) {
  const topology::RingTable rings(speeds);
  machine.best_gbps.assign(machine.size() + 1, 0);
  for (Mask mask = 0; mask <= machine.all(); ++mask) {
    machine.ring_gbps.push_back(rings.gbps(mask));
    double& best = machine.best_gbps[static_cast<size_t>(std::popcount(mask))];
    best = std::max(best, machine.ring_gbps.back());
  }
}

/// Nothing where a pair's link is not known.
std::optional<ReplayMachine> make_machine(std::string name, Inventory inventory) {
  ReplayMachine machine{.name = std::move(name), .inventory = std::move(inventory)};
  Inventory& all = machine.inventory;
  for (size_t i = 0; i < all.devices.size(); ++i)
    if (all.devices[i].kind == DeviceKind::gpu && !all.devices[i].partitioned.value_or(false))
      machine.gpus.push_back(i);
  const size_t n = machine.size();
  if (n < 2 || n > topology::RingTable::kMaxDevices) return std::nullopt;
  all.measured_links.clear();
  machine.points.assign(n, std::vector<int>(n, 0));
  topology::Speeds speeds(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) {
      const Device &a = all.devices[machine.gpus[i]], &b = all.devices[machine.gpus[j]];
      const Link* link = all.link(a.id, b.id);
      const auto figures = link ? pair_figures(a, b, *link) : std::nullopt;
      if (!figures) return std::nullopt;
      speeds[i][j] = speeds[j][i] = figures->gbps;
      machine.points[i][j] = machine.points[j][i] = figures->points;
      all.measured_links.push_back({a.id, b.id, 0, figures->gbps, {}});
    }
  find_rings(machine, speeds);
  return machine;
}

}  // namespace

Result<std::vector<ReplayMachine>> replay_machines(const std::string& folder) {
  constexpr size_t kLargestFile = 16 << 20;
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (files.empty()) return failed(fmt::format("{} holds no recorded machine", folder));
  std::ranges::sort(files);
  std::vector<ReplayMachine> machines;
  for (const auto& file : files) {
    REMUDA_ASSIGN(const std::string text, read_text(file.string(), kLargestFile));
    REMUDA_ASSIGN(Inventory inventory, parse_inventory(text, file.string()));
    if (auto machine = make_machine(file.stem().string(), std::move(inventory)))
      machines.push_back(std::move(*machine));
  }
  return machines;
}

}  // namespace remuda::bench

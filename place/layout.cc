#include "place/layout.h"

#include <string_view>
#include <unordered_map>

namespace remuda::place {
namespace {

std::vector<const Device*> whole_gpus(const Inventory& inventory) {
  std::vector<const Device*> gpus;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::gpu) gpus.push_back(&device);
  if (gpus.size() > static_cast<size_t>(Request::kMostDevices)) gpus.clear();
  return gpus;
}

bool serves(const Link& link, LinkNeed need) {
  if (link.fabric.value_or(Fabric::none) != Fabric::none) return true;
  return need == LinkNeed::p2p && link.peer_access.value_or(PeerAccess::unknown) == PeerAccess::ok;
}

/// Whether the recording shows if the link meets `need`.
bool is_known(const Link& link, LinkNeed need) {
  if (serves(link, need)) return true;
  const bool is_access_known = link.peer_access.value_or(PeerAccess::unknown) != PeerAccess::unknown;
  return need == LinkNeed::p2p ? is_access_known : link.fabric.has_value();
}

}  // namespace

Layout::Layout(const Inventory& inventory)
    : inventory_(&inventory), matrix_(topology::make_matrix(inventory, whole_gpus(inventory))) {}

void Layout::prepare(LinkNeed need) {
  auto& rings = rings_[static_cast<size_t>(need)];
  if (!rings && matrix_.devices.size() <= topology::RingTable::kMaxDevices)
    rings.emplace(speeds_for(*inventory_, matrix_, need));
}

void Layout::prepare() {
  for (const auto& [need, word] : Words<LinkNeed>::table) prepare(need);
}

const topology::RingTable* Layout::rings(LinkNeed need) const {
  const auto& rings = rings_[static_cast<size_t>(need)];
  return rings ? &*rings : nullptr;
}

size_t unknown_pairs(const Inventory& inventory, const std::vector<const Device*>& devices, LinkNeed need) {
  if (need == LinkNeed::any) return 0;
  size_t unknown = 0;
  for (size_t a = 0; a < devices.size(); ++a)
    for (size_t b = a + 1; b < devices.size(); ++b) {
      const Link* link = inventory.link(devices[a]->id, devices[b]->id);
      unknown += link && is_known(*link, need) ? 0 : 1;
    }
  return unknown;
}

topology::Speeds speeds_for(const Inventory& inventory, const topology::Matrix& matrix, LinkNeed need) {
  topology::Speeds all = matrix.speeds();
  if (need == LinkNeed::any) return all;
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t i = 0; i < matrix.devices.size(); ++i) positions.emplace(matrix.devices[i]->id, i);
  topology::Speeds speeds(all.size(), std::vector<double>(all.size(), 0));
  for (const Link& link : inventory.links) {
    const auto a = positions.find(link.a), b = positions.find(link.b);
    if (a == positions.end() || b == positions.end() || !serves(link, need)) continue;
    const size_t i = a->second, j = b->second;
    speeds[i][j] = speeds[j][i] = all[i][j];
  }
  return speeds;
}

}  // namespace remuda::place

#include "confine/device_nodes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.h"
#include "confine/maker.h"

namespace remuda::confine {
namespace {

namespace fs = std::filesystem;

/// Numbers of the kernel's list of devices, Documentation/admin-guide/devices.txt.
constexpr unsigned kNvidiaMajor = 195, kDrmMajor = 226;
constexpr int kFirstRenderMinor = 128;

/// "226:128".
std::optional<DeviceNode> parse_numbers(const std::string& text) {
  DeviceNode node;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, node.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != ':') return std::nullopt;
  return std::from_chars(major.ptr + 1, end, node.minor).ec == std::errc{} ? std::optional(node) : std::nullopt;
}

/// card0, renderD128: graphics, and computing on AMD, use them with every driver.
std::set<DeviceNode> drm_nodes(const std::string& folder) {
  constexpr size_t kLongest = 64;
  std::set<DeviceNode> nodes;
  std::error_code error;
  for (fs::directory_iterator entry(folder + "/drm", error), end; !error && entry != end; entry.increment(error)) {
    const auto text = read_text(entry->path().string() + "/dev", kLongest);
    const auto node = text ? parse_numbers(*text) : std::nullopt;
    if (node) nodes.insert(*node);
  }
  return nodes;
}

std::string pci_folder(const Device& device, const std::string& sysfs) {
  return device.pci.has_value() ? sysfs + "/bus/pci/devices/" + device.pci.value() : "";
}

std::set<DeviceNode> nodes_of(const Device& device, const std::string& sysfs) {
  std::set<DeviceNode> nodes;
  if (device.pci.has_value()) nodes = drm_nodes(pci_folder(device, sysfs));
  const int minor = device.minor.value_or(-1);
  if (minor >= 0 && maker_of(device) == Maker::nvidia) nodes.insert({kNvidiaMajor, static_cast<unsigned>(minor)});
  if (minor >= kFirstRenderMinor && maker_of(device) == Maker::amd)
    nodes.insert({kDrmMajor, static_cast<unsigned>(minor)});
  return nodes;
}

/// Whether `nodes` are all of the device's. A GPU without a driver has none: no process can use it.
bool are_known(const std::set<DeviceNode>& nodes, const Device& device, const std::string& sysfs) {
  if (device.kind == DeviceKind::partition) return true;  // it is used through its GPU's nodes, too
  std::error_code error;
  const bool driven = !device.pci.has_value() || fs::exists(pci_folder(device, sysfs) + "/driver", error);
  return !driven || (maker_of(device) == Maker::nvidia ? device.minor.has_value() : !nodes.empty());
}

}  // namespace

std::vector<DeviceNodes> all_nodes(const Inventory& inventory, const std::string& sysfs) {
  std::vector<DeviceNodes> all;
  for (const Device& device : inventory.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    const std::set<DeviceNode> nodes = nodes_of(device, sysfs);
    all.push_back({device.id, {nodes.begin(), nodes.end()}, are_known(nodes, device, sysfs)});
  }
  return all;
}

Withheld withheld_nodes(const Inventory& inventory, const std::vector<std::string>& granted, const std::string& sysfs) {
  std::set<std::string> needed(granted.begin(), granted.end());
  for (const std::string& id : granted)
    if (const Device* device = inventory.find(id); device && !device->parent.empty()) needed.insert(device->parent);
  std::set<DeviceNode> kept, nodes;
  Withheld withheld;
  for (const Device& device : inventory.devices)
    if (needed.contains(device.id)) kept.merge(nodes_of(device, sysfs));
  for (const Device& device : inventory.devices) {
    if (device.kind == DeviceKind::cpu || needed.contains(device.id)) continue;
    std::set<DeviceNode> own = nodes_of(device, sysfs);
    if (!are_known(own, device, sysfs)) withheld.unknown.push_back(device.label());
    nodes.merge(own);
  }
  std::ranges::set_difference(nodes, kept, std::back_inserter(withheld.nodes));
  return withheld;
}

}  // namespace remuda::confine

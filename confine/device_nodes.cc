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

/// Whether the system shows that the device has none: then no process can use it.
bool lacks_driver(const Device& device, const std::string& sysfs) {
  const std::string folder = pci_folder(device, sysfs);
  std::error_code error;
  return !folder.empty() && fs::exists(folder, error) && !fs::exists(folder + "/driver", error) && !error;
}

/// Whether `nodes` are all of the device's.
bool are_known(const std::set<DeviceNode>& nodes, const Device& device, const std::string& sysfs) {
  if (device.kind == DeviceKind::partition) return true;  // it is used through its GPU's nodes, too
  const bool are_told = maker_of(device) == Maker::nvidia ? device.minor.has_value() : !nodes.empty();
  return are_told || lacks_driver(device, sysfs);
}

/// All that may be the device's: NVIDIA's are numbered from 0, below those that all its devices share; of graphics the
/// kernel has 64 of each kind.
std::set<DeviceNode> possible_nodes(const Device& device) {
  constexpr unsigned kNvidiaMinors = 250, kDrmMinors = 64;
  std::set<DeviceNode> nodes;
  if (maker_of(device) == Maker::nvidia) {
    for (unsigned minor = 0; minor < kNvidiaMinors; ++minor) nodes.insert({kNvidiaMajor, minor});
    return nodes;
  }
  for (unsigned minor = 0; minor < kDrmMinors; ++minor) {
    nodes.insert({kDrmMajor, minor});
    nodes.insert({kDrmMajor, kFirstRenderMinor + minor});
  }
  return nodes;
}

}  // namespace

std::vector<DeviceNodes> all_nodes(const Inventory& inventory, const std::string& sysfs) {
  std::vector<DeviceNodes> all;
  for (const Device& device : inventory.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    const std::set<DeviceNode> nodes = nodes_of(device, sysfs);
    const bool are_all = are_known(nodes, device, sysfs);
    const std::set<DeviceNode> possible = are_all ? std::set<DeviceNode>() : possible_nodes(device);
    all.push_back({device.id, {nodes.begin(), nodes.end()}, are_all, {possible.begin(), possible.end()}});
  }
  return all;
}

Withheld withheld_nodes(const Inventory& inventory, const std::vector<std::string>& granted, const std::string& sysfs) {
  std::set<std::string> needed(granted.begin(), granted.end());
  for (const std::string& id : granted)
    if (const Device* device = inventory.find(id); device && !device->parent.empty()) needed.insert(device->parent);
  std::set<DeviceNode> kept, nodes, possible;
  Withheld withheld;
  bool are_kept_known = true;
  for (const DeviceNodes& device : all_nodes(inventory, sysfs)) {
    const bool is_needed = needed.contains(device.device);
    (is_needed ? kept : nodes).insert(device.nodes.begin(), device.nodes.end());
    if (device.are_all) continue;
    if (is_needed) {
      are_kept_known = false;
      continue;
    }
    withheld.unknown.push_back(inventory.find(device.device)->label());
    possible.insert(device.possible.begin(), device.possible.end());
  }
  if (are_kept_known) nodes.merge(possible);
  std::ranges::set_difference(nodes, kept, std::back_inserter(withheld.nodes));
  return withheld;
}

}  // namespace remuda::confine

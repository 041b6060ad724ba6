#include "probe/pci/gpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "probe/pci/function.h"
#include "probe/sysfs.h"

namespace remuda::probe::pci {
namespace {

constexpr uint32_t kAmd = 0x1002;

struct Vendor {
  uint32_t id;
  const char* name;
  const char* driver;  ///< the driver whose devices have a probe of their own; empty when there is no such probe
};
constexpr std::array kVendors{Vendor{0x10de, "NVIDIA", "nvidia"}, Vendor{kAmd, "AMD", "amdgpu"},
                              Vendor{0x8086, "Intel", ""}};

constexpr std::array<uint32_t, 4> kClasses{0x0300, 0x0302, 0x0380, 0x1200};

/// Display chips of servers' management controllers that have a GPU maker's vendor number: Rage XL, ES1000.
constexpr std::array<std::pair<uint32_t, uint32_t>, 3> kManagementDisplays{
    {{kAmd, 0x4752}, {kAmd, 0x515e}, {kAmd, 0x5969}}};

/// PCIe speeds by generation, in the kernel's spelling.
constexpr std::array kSpeeds{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};

Reading<int> read_generation(const std::string& path) {
  const auto speed = sysfs::read_word(path);
  if (!speed.has_value()) return speed.missing();
  for (size_t i = 0; i < kSpeeds.size(); ++i)
    if (speed.value().starts_with(fmt::format("{} GT/s", kSpeeds[i]))) return static_cast<int>(i) + 1;
  return Missing{MissingReason::unsupported, fmt::format("{} holds no PCIe speed", path)};
}

Reading<int> read_width(const std::string& path) {
  constexpr int kWidest = 32;
  return sysfs::to_int(sysfs::read_integer(path, 1, kWidest));
}

Reading<int> lower(const Reading<int>& card, const Reading<int>& slot) {
  if (!card.has_value() || !slot.has_value()) return card;
  return std::min(card.value(), slot.value());
}

std::string above(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }

/// Removes the bridges that are part of the card from its place; returns the folder of the card's outermost function.
std::string take_card(const Function& function, uint32_t vendor, Place& place) {
  std::string edge = function.folder;
  while (vendor == kAmd && !place.bridges.empty() && read_hex(above(edge) + "/vendor") == kAmd) {
    edge = above(edge);
    place.bridges.pop_back();
  }
  return edge;
}

void read_pcie(const std::string& edge, bool has_slot, Device& device) {
  const std::string slot = has_slot ? above(edge) : edge;
  device.pcie_generation_card = read_generation(edge + "/max_link_speed");
  device.pcie_generation_max = lower(device.pcie_generation_card, read_generation(slot + "/max_link_speed"));
  device.pcie_width_max = lower(read_width(edge + "/max_link_width"), read_width(slot + "/max_link_width"));
  device.status.pcie_generation = read_generation(edge + "/current_link_speed");
  device.status.pcie_width = read_width(edge + "/current_link_width");
}

/// Why only PCI has readings of a device with this driver; nothing when its vendor's probe has them.
std::optional<Missing> why_unread(const std::string& driver, const Vendor& vendor) {
  if (driver.empty()) return Missing{MissingReason::no_driver, "no driver is bound to it"};
  if (driver == vendor.driver) return std::nullopt;
  if (driver.find("vfio") != std::string::npos || driver == "pciback")
    return Missing{MissingReason::no_driver, fmt::format("handed to a virtual machine ({})", driver)};
  return Missing{MissingReason::unsupported,
                 fmt::format("the {} driver is bound, which reports nothing of its use", driver)};
}

const Vendor* vendor_of_gpu(const std::string& path, uint32_t device_id) {
  const auto id = read_hex(path + "/vendor");
  const auto vendor = std::ranges::find_if(kVendors, [&](const Vendor& known) { return known.id == id; });
  if (vendor == kVendors.end()) return nullptr;
  return std::ranges::count(kManagementDisplays, std::pair(vendor->id, device_id)) ? nullptr : vendor;
}

}  // namespace

std::optional<Gpu> read_gpu(const std::string& path) {
  constexpr int kInterfaceBits = 8;
  const auto code = read_hex(path + "/class");
  if (!code || !std::ranges::count(kClasses, *code >> kInterfaceBits)) return std::nullopt;
  const auto device_id = read_hex(path + "/device");
  const Vendor* vendor = device_id ? vendor_of_gpu(path, *device_id) : nullptr;
  const auto function = vendor ? read_function(path) : std::nullopt;
  if (!function) return std::nullopt;

  Gpu gpu{{}, function->place, static_cast<uint16_t>(vendor->id), static_cast<uint16_t>(*device_id)};
  Device& device = gpu.device;
  device.id = function->address;
  device.kind = DeviceKind::gpu;
  device.vendor = vendor->name;
  device.pci = function->address;
  device.pcie_root = gpu.place.root;
  device.numa_node = function->numa_node;
  device.cores = sysfs::read_index_list(path + "/local_cpulist");
  const std::string edge = take_card(*function, vendor->id, gpu.place);
  read_pcie(edge, !gpu.place.bridges.empty(), device);
  if (const auto why = why_unread(sysfs::link_name(path + "/driver"), *vendor)) {
    sysfs::FillUnread fill{*why};
    Device::fields(device, fill);
    device.profile = {};
  }
  return gpu;
}

}  // namespace remuda::probe::pci

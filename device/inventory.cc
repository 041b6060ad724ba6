#include "device/inventory.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "device/fields.h"
#include "device/packed.h"
#include "device/pci_address.h"

namespace remuda {
namespace {

constexpr size_t kMostDevices = 4096;

tl::unexpected<Error> wrong(std::string_view where, const std::string& what) {
  return usage_error(fmt::format("{}: {}", where, what));
}

std::pair<std::string, std::string> ordered(const Link& link) { return std::minmax(link.a, link.b); }

Result<std::set<std::string>> check_names(const Inventory& inventory, std::string_view where) {
  std::set<std::string> names;
  for (const Device& device : inventory.devices)
    if (!names.insert(device.id).second) return wrong(where, fmt::format("two devices have the id '{}'", device.id));
  for (const Device& device : inventory.devices)
    if (!device.parent.empty() && !names.contains(device.parent))
      return wrong(where, fmt::format("the parent of '{}' is '{}', which is not there", device.id, device.parent));
  for (const Nic& nic : inventory.nics)
    if (!names.insert(nic.name).second) return wrong(where, fmt::format("two things are named '{}'", nic.name));
  return names;
}

Result<void> check_ends(const std::string& a, const std::string& b, const std::set<std::string>& names,
                        std::string_view where) {
  for (const std::string& end : {a, b})
    if (!names.contains(end)) return wrong(where, fmt::format("a link leads to '{}', which is not there", end));
  if (a == b) return wrong(where, fmt::format("a link joins '{}' with itself", a));
  return {};
}

Result<void> check(const Inventory& inventory, std::string_view where) {
  if (inventory.version != Inventory::kVersion)
    return wrong(where, fmt::format("this is an inventory of version {}; this remuda reads version {}",
                                    inventory.version, Inventory::kVersion));
  if (inventory.devices.size() > kMostDevices)
    return wrong(where, fmt::format("{} devices; at most {} are read", inventory.devices.size(), kMostDevices));
  REMUDA_ASSIGN(const std::set<std::string> names, check_names(inventory, where));
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Link& link : inventory.links) {
    REMUDA_TRY(check_ends(link.a, link.b, names, where));
    if (!pairs.insert(ordered(link)).second)
      return wrong(where, fmt::format("the link of '{}' and '{}' stands twice", link.a, link.b));
  }
  for (const MeasuredLink& link : inventory.measured_links) REMUDA_TRY(check_ends(link.a, link.b, names, where));
  for (const Sample& sample : inventory.samples)
    if (sample.devices.size() != inventory.devices.size())
      return wrong(where, fmt::format("a sample of {} devices, where the machine has {}", sample.devices.size(),
                                      inventory.devices.size()));
  return {};
}

bool is_uuid_prefix(std::string_view name, const Device& device) {
  constexpr size_t kAtLeast = 4;
  if (!device.uuid.has_value()) return false;
  const std::string& uuid = device.uuid.value();
  const size_t dash = uuid.find('-');
  const size_t prefix = dash == std::string::npos ? 0 : dash + 1;
  return name.size() >= prefix + kAtLeast && uuid.starts_with(name);
}

bool is_called(std::string_view name, const Device& device) {
  if (name == device.id || name == device.label()) return true;
  if (device.kind == DeviceKind::gpu && name == std::to_string(device.index)) return true;
  return device.kind != DeviceKind::partition && device.pci.has_value() && pci_address(name) == device.pci.value();
}

}  // namespace

std::string Device::label() const { return fmt::format("{}:{}", to_string(kind), index); }

const Device* Inventory::find(std::string_view id) const {
  const auto found = std::ranges::find(devices, id, &Device::id);
  return found == devices.end() ? nullptr : &*found;
}

Result<const Device*> Inventory::resolve(std::string_view name) const {
  if (const auto found = std::ranges::find_if(devices, [&](const Device& device) { return is_called(name, device); });
      found != devices.end())
    return &*found;
  std::vector<const Device*> begun;
  std::string known;
  for (const Device& device : devices) {
    if (is_uuid_prefix(name, device)) begun.push_back(&device);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", device.label());
  }
  if (begun.size() == 1) return begun.front();
  if (begun.size() > 1)
    return usage_error(fmt::format("'{}' begins the UUIDs of {} devices, {} and {} among them", name, begun.size(),
                                   begun[0]->id, begun[1]->id));
  const std::string unseen = this->unseen();
  return usage_error(fmt::format("there is no device '{}' on {}; there are: {}{}", name, host, known,
                                 unseen.empty() ? "" : "; others may be there that cannot be seen (" + unseen + ")"));
}

std::string Inventory::unseen() const {
  std::string why;
  for (const ProbeReport& probe : probes)
    if (probe.blind) why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", probe.name, probe.reason);
  return why;
}

const Link* Inventory::link(std::string_view a, std::string_view b) const {
  const auto found = std::ranges::find_if(
      links, [&](const Link& link) { return (link.a == a && link.b == b) || (link.a == b && link.b == a); });
  return found == links.end() ? nullptr : &*found;
}

Json to_json(const Inventory& inventory) { return fields::write(inventory); }

Result<Inventory> parse_inventory(std::string_view text, std::string_view where) {
  REMUDA_ASSIGN(const Json json, parse_json(text, where));
  if (!json.is_object() || !json.contains("devices"))
    return wrong(where, "this is no inventory (remuda record, remuda import and remuda list --json write one)");
  Inventory inventory;
  REMUDA_TRY(fields::read(json, std::string(where), inventory));
  REMUDA_TRY(check(inventory, where));
  return inventory;
}

std::string pack(const Inventory& inventory) { return packed::write(inventory); }

Result<Inventory> unpack_inventory(std::string_view line, std::string_view where) {
  auto inventory = packed::read<Inventory>(line);
  if (!inventory) return wrong(where, "this is no packed inventory");
  REMUDA_TRY(check(*inventory, where));
  return *std::move(inventory);
}

}  // namespace remuda

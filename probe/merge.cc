#include "probe/merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <ranges>
#include <type_traits>

#include "base/check.h"

namespace remuda::probe {
namespace {

template <typename T>
concept Listed = requires { T::kName; };

/// The address of each field of a struct, in the order of fields().
struct Addresses {
  std::vector<const void*> list;
  void operator()(const char*, const auto& value, auto&&...) { list.push_back(&value); }
};

template <typename T>
void fill(T& into, const T& from);

template <typename T>
void fill_value(Reading<T>& into, const Reading<T>& from) {
  if (!into.was_read() || (!into.has_value() && from.has_value())) into = from;
}
void fill_value(std::string& into, const std::string& from) {
  if (into.empty()) into = from;
}
template <Listed T>
void fill_value(T& into, const T& from) {
  fill(into, from);
}
template <typename T>
void fill_value(T&, const T&) {}

/// Fills each field of one struct that has no value from the same field of another.
struct Fill {
  std::vector<const void*>::const_iterator from;
  template <typename T>
  void operator()(const char*, T& into, const char*, bool = false) {
    fill_value(into, *static_cast<const T*>(*from++));
  }
};

template <typename T>
void fill(T& into, const T& from) {
  Addresses addresses;
  T::fields(from, addresses);
  Fill visitor{addresses.list.begin()};
  T::fields(into, visitor);
}

/// Adds `entry` to the list, or merges it into the entry with the same key.
template <typename T, typename Key>
void add(std::vector<T>& list, T entry, Key key) {
  const auto same = std::ranges::find(list, key(entry), key);
  if (same == list.end())
    list.push_back(std::move(entry));
  else
    fill(*same, entry);
}

/// Devices of all findings, and where each finding's ids went.
struct Devices {
  std::vector<Device> list;
  std::map<std::pair<size_t, std::string>, size_t> position;  ///< (finding, id there) -> in the list

  void add(size_t finding, const Device& device) {
    const auto same = std::ranges::find_if(list, [&](const Device& other) {
      return device.kind == DeviceKind::gpu && other.kind == DeviceKind::gpu && device.pci.has_value() &&
             other.pci == device.pci;
    });
    position[{finding, device.id}] = static_cast<size_t>(same - list.begin());
    if (same == list.end())
      list.push_back(device);
    else
      fill(*same, device);
  }
};

/// GPUs, then partitions, then CPUs; within a kind by PCI address. A device without an address (it is lost, or not in
/// its recording) follows the one it came after.
std::vector<size_t> order_of(const std::vector<Device>& devices) {
  const auto rank = [](DeviceKind kind) { return kind == DeviceKind::gpu ? 0 : kind == DeviceKind::partition ? 1 : 2; };
  std::vector<std::pair<int, std::string>> keys;
  std::map<DeviceKind, std::string> before;
  for (const Device& device : devices) {
    std::string& address = before[device.kind];
    address = device.pci.value_or(address);
    keys.emplace_back(rank(device.kind), address);
  }
  std::vector<size_t> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return keys[i]; });
  return order;
}

std::string final_id(const Device& device) {
  if (device.uuid.has_value()) return device.uuid.value();
  if (device.kind == DeviceKind::gpu && device.pci.has_value()) return device.pci.value();
  return device.label();
}

/// The devices in their final order, with index and id; `place[i]` is where the i-th of `devices` went.
std::vector<Device> arrange(std::vector<Device> devices, std::vector<size_t>& place) {
  std::vector<Device> arranged;
  std::map<DeviceKind, int> count;
  place.resize(devices.size());
  for (const size_t i : order_of(devices)) {
    place[i] = arranged.size();
    Device& device = arranged.emplace_back(std::move(devices[i]));
    device.index = count[device.kind]++;
    device.id = final_id(device);
  }
  return arranged;
}

}  // namespace

Inventory merge(std::vector<Finding> findings) {
  Devices found;
  Inventory inventory;
  for (size_t f = 0; f < findings.size(); ++f) {
    for (const Device& device : findings[f].devices) found.add(f, device);
    for (Driver& driver : findings[f].drivers)
      add(inventory.drivers, std::move(driver), [](const Driver& d) { return d.vendor; });
    for (NumaNode& node : findings[f].numa)
      add(inventory.numa, std::move(node), [](const NumaNode& n) { return n.node; });
    for (Nic& nic : findings[f].nics) add(inventory.nics, std::move(nic), [](const Nic& n) { return n.name; });
  }
  std::vector<size_t> place;
  inventory.devices = arrange(std::move(found.list), place);
  for (size_t f = 0; f < findings.size(); ++f) {
    const auto renamed = [&](const std::string& id) {
      const auto known = found.position.find({f, id});
      return known == found.position.end() ? id : inventory.devices[place[known->second]].id;
    };
    for (const Device& device : findings[f].devices) {
      if (device.parent.empty()) continue;
      inventory.devices[place[found.position.at({f, device.id})]].parent = renamed(device.parent);
    }
    for (Link& link : findings[f].links) {
      link.a = renamed(link.a), link.b = renamed(link.b);
      if (link.a != link.b)
        add(inventory.links, std::move(link),
            [](const Link& l) -> std::pair<std::string, std::string> { return std::minmax(l.a, l.b); });
    }
  }
  return inventory;
}

}  // namespace remuda::probe

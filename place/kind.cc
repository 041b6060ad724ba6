#include "place/kind.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "place/rates.h"

namespace remuda::place {
namespace {

constexpr double kSameSpeed = 0.05;

/// Numbers keys in the order of their first use.
class Numbering {
 public:
  size_t operator()(std::string key) { return numbers_.try_emplace(std::move(key), numbers_.size()).first->second; }

 private:
  std::map<std::string, size_t> numbers_;
};

std::string model_key(const Device& device) {
  return device.vendor + '\n' + device.model + '\n' + to_string(device.kind) + '\n' + device.profile.value_or("");
}

std::string numa_key(const Device& device) {
  if (device.numa_node.has_value()) return std::to_string(device.numa_node.value());
  std::string key = "cores";
  if (device.cores.has_value())
    for (const int core : device.cores.value()) key += ' ' + std::to_string(core);
  return key;
}

}  // namespace

std::vector<Kind> kinds_of(const std::vector<const Device*>& devices) {
  Numbering models, nodes, roots;
  std::vector<Kind> kinds;
  for (const Device* device : devices)
    kinds.push_back({models(model_key(*device)), nodes(numa_key(*device)), roots(device->pcie_root.value_or(""))});
  return kinds;
}

std::vector<size_t> speed_classes_of(const Inventory& inventory, const std::vector<const Device*>& devices) {
  const std::vector<double> rates = rates_of(inventory, devices).values;
  std::vector<size_t> order(devices.size()), classes(devices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(rates[i], i); });
  double slowest = order.empty() ? 0 : rates[order.front()];
  size_t latest = 0;
  for (const size_t i : order) {
    if (rates[i] > slowest * (1 + kSameSpeed)) ++latest, slowest = rates[i];
    classes[i] = latest;
  }
  return classes;
}

}  // namespace remuda::place

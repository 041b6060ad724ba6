#include "tests/nvml/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "device/fields.h"

namespace remuda::tests::nvml {
namespace {

/// Fields that NVML does not report, or that a recording has in words of its own.
const std::set<std::string> kNotTold{"id", "index", "vendor", "parent",   "serial", "pcie_root", "detail",
                                     "a",  "b",     "label",  "max_gbps", "weight", "hops"};

class Comparison {
 public:
  void compare(const Json& recorded, const Json& shown, const std::string& where) {
    if (recorded.is_object() && recorded.contains("missing"))
      require(reason_of(shown) == recorded["missing"].get<std::string>(), recorded, shown, where);
    else if (recorded.is_object())
      compare_objects(recorded, shown, where);
    else if (recorded.is_array())
      compare_lists(recorded, shown, where);
    else if (recorded.is_number() && shown.is_number())
      require(is_near(recorded.get<double>(), shown.get<double>()), recorded, shown, where);
    else
      require(recorded == shown, recorded, shown, where);
  }
  void require(bool holds, const Json& recorded, const Json& shown, const std::string& where) {
    if (!holds) lines_.push_back(fmt::format("{}: recorded {}, shown {}", where, to_line(recorded), to_line(shown)));
  }
  std::vector<std::string> lines() { return std::move(lines_); }

 private:
  static bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(a)); }

  /// A reading that was not taken is left out of JSON, and is treated like an unsupported one.
  static std::string reason_of(const Json& shown) {
    if (shown.is_null()) return to_string(MissingReason::unsupported);
    return shown.is_object() ? shown.value("missing", "") : "";
  }

  void compare_objects(const Json& recorded, const Json& shown, const std::string& where) {
    for (const auto& [key, value] : recorded.items()) {
      if (kNotTold.contains(key)) continue;
      const bool is_there = shown.is_object() && shown.contains(key);
      compare(value, is_there ? shown[key] : Json(), fmt::format("{}.{}", where, key));
    }
  }
  void compare_lists(const Json& recorded, const Json& shown, const std::string& where) {
    if (!shown.is_array() || shown.size() != recorded.size()) return require(false, recorded, shown, where);
    for (size_t i = 0; i < recorded.size(); ++i) compare(recorded[i], shown[i], fmt::format("{}[{}]", where, i));
  }

  std::vector<std::string> lines_;
};

/// Its processes in the order of their ids.
Json write_sorted(Device device) {
  std::vector<Process> processes = device.status.processes.value_or({});
  std::ranges::sort(processes, {}, &Process::pid);
  if (device.status.processes.has_value()) device.status.processes = std::move(processes);
  return fields::write(device);
}

void compare_devices(const std::vector<Device>& recorded, const std::vector<Device>& shown, Comparison& comparison) {
  comparison.require(recorded.size() == shown.size(), recorded.size(), shown.size(), "number of GPUs");
  for (size_t i = 0; i < std::min(recorded.size(), shown.size()); ++i) {
    comparison.compare(write_sorted(recorded[i]), write_sorted(shown[i]), shown[i].label());
    if (recorded[i].uuid.has_value())
      comparison.require(shown[i].id == recorded[i].uuid.value(), recorded[i].uuid.value(), shown[i].id, "id");
  }
}

/// A link's recorded fields, without those that every live machine reports and this recording lacks.
Json facts_of(const Link& link) {
  Json facts = fields::write(link);
  for (const char* key : {"path", "peer_access"})
    if (facts.contains(key) && facts[key].is_object()) facts.erase(key);
  return facts;
}

}  // namespace

std::vector<Device> gpus_of(const Inventory& machine) {
  std::vector<Device> devices;
  for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::partition})
    std::ranges::copy_if(machine.devices, std::back_inserter(devices),
                         [&](const Device& device) { return device.kind == kind; });
  return devices;
}

std::vector<std::string> disagreements(const Inventory& recorded, const Inventory& shown) {
  Comparison comparison;
  const std::vector<Device> recorded_gpus = gpus_of(recorded), shown_gpus = gpus_of(shown);
  compare_devices(recorded_gpus, shown_gpus, comparison);
  std::map<std::string, std::string> shown_ids;
  for (size_t i = 0; i < std::min(recorded_gpus.size(), shown_gpus.size()); ++i)
    shown_ids[recorded_gpus[i].id] = shown_gpus[i].id;
  for (const Link& link : recorded.links) {
    if (!shown_ids.contains(link.a) || !shown_ids.contains(link.b)) continue;
    const Link* same = shown.link(shown_ids[link.a], shown_ids[link.b]);
    comparison.compare(facts_of(link), same ? fields::write(*same) : Json(), fmt::format("{} - {}", link.a, link.b));
  }
  return comparison.lines();
}

}  // namespace remuda::tests::nvml

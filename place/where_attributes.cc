#include "place/where_attributes.h"

#include <algorithm>

namespace remuda::place {
namespace {

using Value = Reading<AttributeValue>;

template <typename T>
Value value_of(const Reading<T>& reading) {
  if (!reading.has_value()) return reading.missing();
  if constexpr (std::is_arithmetic_v<T>)
    return AttributeValue(static_cast<double>(reading.value()));
  else
    return AttributeValue(reading.value());
}

Value text_or(const std::string& text, const char* why_missing) {
  if (text.empty()) return Missing{MissingReason::unsupported, why_missing};
  return AttributeValue(text);
}

template <auto member>
Value device(const Inventory&, const Device& device) {
  return value_of(device.*member);
}

template <auto member>
Value driver(const Inventory& inventory, const Device& device) {
  for (const Driver& driver : inventory.drivers)
    if (driver.vendor == device.vendor) return value_of(driver.*member);
  return Missing{MissingReason::unsupported, "nothing is recorded of its driver"};
}

/// Kubernetes' word for a partition ("mig") is that of the one maker whose driver it describes.
Value type(const Inventory&, const Device& device) {
  return AttributeValue(std::string(device.kind == DeviceKind::partition ? "mig" : to_string(device.kind)));
}

Value kind(const Inventory&, const Device& device) { return AttributeValue(std::string(to_string(device.kind))); }
Value id(const Inventory&, const Device& device) { return AttributeValue(device.id); }
Value index(const Inventory&, const Device& device) { return AttributeValue(static_cast<double>(device.index)); }
Value vendor(const Inventory&, const Device& device) { return text_or(device.vendor, "nothing is recorded of it"); }
Value model(const Inventory&, const Device& device) { return text_or(device.model, "nothing is recorded of it"); }
Value parent(const Inventory&, const Device& device) { return text_or(device.parent, "it is no partition"); }

using enum AttributeType;

constexpr Attribute kAttributes[] = {
    {"type", text, "gpu, mig (a partition of a GPU) or cpu", type},
    {"uuid", text, "the driver's UUID", device<&Device::uuid>},
    {"productName", text, "its name, as the driver reports it", model},
    {"architecture", text, "name of the chip's generation or target", device<&Device::architecture>},
    {"cudaComputeCapability", version, "compute capability, 8.0", device<&Device::compute_capability>},
    {"driverVersion", version, "version of its driver", driver<&Driver::version>},
    {"cudaDriverVersion", version, "newest compute runtime its driver serves", driver<&Driver::runtime_version>},
    {"pciBusID", text, "PCI address, 0000:27:00.0", device<&Device::pci>},
    {"pcieRoot", text, "PCI root it hangs on, pci0000:20", device<&Device::pcie_root>},
    {"numaNode", number, "NUMA node it belongs to", device<&Device::numa_node>},
    {"memory", amount, "memory in all, 40Gi", device<&Device::memory_bytes>},
    {"multiprocessors", number, "multiprocessors or compute units", device<&Device::multiprocessors>},
    {"profile", text, "of a partition: its size as the driver names it", device<&Device::profile>},
    {"parentUUID", text, "of a partition: the id of its GPU", parent},
    {"kind", text, "gpu, partition or cpu", kind},
    {"vendor", text, "who made it", vendor},
    {"index", number, "position among the devices of its kind", index},
    {"id", text, "remuda's name for it", id},
};

}  // namespace

std::span<const Attribute> attributes() { return kAttributes; }

const Attribute* find_attribute(std::string_view name) {
  const auto found = std::ranges::find(kAttributes, name, &Attribute::name);
  return found == std::end(kAttributes) ? nullptr : found;
}

}  // namespace remuda::place

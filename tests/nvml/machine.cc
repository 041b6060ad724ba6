#include "tests/nvml/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <strings.h>

#include "base/file.h"
#include "tests/nvml/ports.h"

namespace remuda::tests::nvml {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

bool is_ours(const std::string& vendor) { return vendor.empty() || ::strcasecmp(vendor.c_str(), "nvidia") == 0; }

template <typename T>
void make_up(Reading<T>& reading, T value) {
  if (!reading.was_read()) reading = Reading<T>(std::move(value));
}

/// Also where the recording says that its source does not tell.
void name(Reading<std::string>& reading, std::string value) {
  if (!reading.has_value() && reading.missing().reason == MissingReason::unsupported) reading = std::move(value);
}

void make_up(Device& device, int number) {
  name(device.uuid, fmt::format("GPU-00000000-0000-0000-0000-{:012}", number));
  name(device.pci, fmt::format("0000:{:02x}:00.0", 0x10 + number));
  make_up(device.memory_bytes, 24 * kGiB);
  make_up(device.status.memory_used_bytes, int64_t{0});
  if (device.model.empty()) device.model = "Test GPU";
}

Driver driver_of(const Inventory& inventory) {
  Driver driver;
  for (const Driver& known : inventory.drivers)
    if (is_ours(known.vendor)) driver = known;
  make_up(driver.version, std::string("550.54.15"));
  make_up(driver.library_version, "12." + driver.version.value_or("550.54.15"));
  make_up(driver.runtime_version, std::string("12.4"));
  return driver;
}

void add_instances(const Inventory& inventory, Gpu& gpu) {
  for (const Device& device : inventory.devices) {
    if (device.kind != DeviceKind::partition || device.parent != gpu.device.id) continue;
    auto instance = std::make_unique<Gpu>();
    instance->device = device;
    instance->index = static_cast<int>(gpu.instances.size());
    instance->parent = &gpu;
    instance->gpu_instance = static_cast<unsigned>(instance->index) + 1;
    instance->compute_instance = 0;
    gpu.instances.push_back(std::move(instance));
  }
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::load(const std::string& path) {
  REMUDA_ASSIGN(const std::string text, read_text(path));
  REMUDA_ASSIGN(Inventory inventory, parse_inventory(text, path));
  return std::make_unique<Machine>(std::move(inventory));
}

Machine::Machine(Inventory inventory) : inventory_(std::move(inventory)), driver_(driver_of(inventory_)) {
  for (const Device& device : inventory_.devices) {
    if (device.kind != DeviceKind::gpu || !is_ours(device.vendor)) continue;
    auto gpu = std::make_unique<Gpu>();
    gpu->device = device;
    gpu->index = static_cast<int>(gpus_.size());
    make_up(gpu->device, gpu->index);
    add_instances(inventory_, *gpu);
    gpus_.push_back(std::move(gpu));
  }
  std::vector<std::vector<Port>> ports = ports_of(*this);
  for (size_t i = 0; i < gpus_.size(); ++i) gpus_[i]->ports = std::move(ports[i]);
}

const Link* Machine::link(const Gpu& a, const Gpu& b) const { return inventory_.link(a.device.id, b.device.id); }

bool Machine::owns(Handle handle) const {
  return std::ranges::any_of(gpus_, [&](const auto& gpu) {
    return gpu.get() == handle ||
           std::ranges::any_of(gpu->instances, [&](const auto& instance) { return instance.get() == handle; });
  });
}

}  // namespace remuda::tests::nvml

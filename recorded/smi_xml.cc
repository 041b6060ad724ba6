#include <algorithm>
#include <fmt/format.h>

#include "device/pci_address.h"
#include "recorded/formats.h"
#include "recorded/machine.h"
#include "recorded/smi_values.h"

namespace remuda::recorded {
namespace {

constexpr const char* kVendor = "NVIDIA";
constexpr size_t kMostXmlGpus = 1024;

void read_identity(const Element& gpu, Device& device) {
  device.model = text_of(gpu, {"product_name"}).value_or("");
  device.uuid = text_of(gpu, {"uuid"});
  device.serial = text_of(gpu, {"serial"});
  device.architecture = text_of(gpu, {"product_architecture"});
  device.minor = whole_of(gpu, {"minor_number"});
  device.pci = text_of(gpu, {"pci/pci_bus_id"});
  const std::string said = device.pci.value_or(std::string(gpu.attribute("id")));
  if (const auto address = pci_address(said))
    device.pci = *address;
  else if (device.pci.has_value())
    device.pci = Missing{MissingReason::unsupported, fmt::format("the source says {}", brief(said, 60))};
}

void read_limits(const Element& gpu, Device& device) {
  device.memory_bytes = bytes_of(gpu, {"fb_memory_usage/total"});
  device.pcie_generation_max = whole_of(gpu, {"pci/pci_gpu_link_info/pcie_gen/max_link_gen"});
  device.pcie_generation_card = whole_of(gpu, {"pci/pci_gpu_link_info/pcie_gen/max_device_link_gen"});
  device.pcie_width_max = whole_of(gpu, {"pci/pci_gpu_link_info/link_widths/max_link_width"});
  device.power_limit_watts = number_of(gpu, {"gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit",
                                             "power_readings/enforced_power_limit", "power_readings/power_limit"});
  device.power_limit_max_watts =
      number_of(gpu, {"gpu_power_readings/max_power_limit", "power_readings/max_power_limit"});
  device.sm_clock_max_mhz = whole_of(gpu, {"max_clocks/sm_clock"});
  device.memory_clock_max_mhz = whole_of(gpu, {"max_clocks/mem_clock"});
  device.partitioned = flag_of(gpu, {"mig_mode/current_mig"});
  device.persistence = flag_of(gpu, {"persistence_mode"});
  device.ecc = flag_of(gpu, {"ecc_mode/current_ecc"});
  device.compute_mode = compute_mode_of(gpu);
}

void read_status(const Element& gpu, Status& status) {
  status.memory_used_bytes = bytes_of(gpu, {"fb_memory_usage/used"});
  status.memory_reserved_bytes = bytes_of(gpu, {"fb_memory_usage/reserved"});
  status.busy = share_of(gpu, {"utilization/gpu_util"});
  status.memory_busy = share_of(gpu, {"utilization/memory_util"});
  status.power_watts = number_of(gpu, {"gpu_power_readings/power_draw", "gpu_power_readings/instant_power_draw",
                                       "gpu_power_readings/average_power_draw", "power_readings/power_draw"});
  status.temperature_c = number_of(gpu, {"temperature/gpu_temp"});
  status.sm_clock_mhz = whole_of(gpu, {"clocks/sm_clock"});
  status.memory_clock_mhz = whole_of(gpu, {"clocks/mem_clock"});
  status.throttle = throttle_of(gpu);
  status.ecc_corrected = sum_of(gpu, {"ecc_errors/volatile/single_bit/total", "ecc_errors/volatile/sram_correctable",
                                      "ecc_errors/volatile/dram_correctable"});
  status.ecc_uncorrected =
      sum_of(gpu, {"ecc_errors/volatile/double_bit/total", "ecc_errors/volatile/sram_uncorrectable",
                   "ecc_errors/volatile/sram_uncorrectable_parity", "ecc_errors/volatile/sram_uncorrectable_secded",
                   "ecc_errors/volatile/dram_uncorrectable"});
  status.remapped_rows = sum_of(gpu, {"remapped_rows/remapped_row_corr", "remapped_rows/remapped_row_unc"});
  status.remap_pending = flag_of(gpu, {"remapped_rows/remapped_row_pending"});
  status.remap_failed = flag_of(gpu, {"remapped_rows/remapped_row_failure"});
  status.pcie_generation = whole_of(gpu, {"pci/pci_gpu_link_info/pcie_gen/current_link_gen"});
  status.pcie_width = whole_of(gpu, {"pci/pci_gpu_link_info/link_widths/current_link_width"});
  status.processes = processes_of(gpu);
}

/// What nvidia-smi says of the whole card in place of any of its values; the others are of the past then.
std::optional<Missing> lost_of(const Element& gpu) {
  const std::string_view text = trim(gpu.text);
  for (const std::string_view words : {"GPU is lost", "[GPU is lost]", "GPU requires reset", "[GPU requires reset]"})
    if (text == words && gpu.name != "process_name")
      return Missing{MissingReason::lost, fmt::format("nvidia-smi says {}", words)};
  for (const Element& child : gpu.children)
    if (auto lost = lost_of(child)) return lost;
  return std::nullopt;
}

/// A visitor of fields().
struct SetMissing {
  const Missing& missing;
  template <typename T>
  void operator()(const char*, Reading<T>& reading, const char*) const {
    reading = missing;
  }
};

/// Cards before row remapping retire pages. An inventory has no field for them.
void note_retired_pages(const Element& gpu, const Device& device, Inventory& inventory) {
  const auto pages = sum_of(gpu, {"retired_pages/multiple_single_bit_retirement/retired_count",
                                  "retired_pages/double_bit_retirement/retired_count"});
  const auto pending = flag_of(gpu, {"retired_pages/pending_retirement", "retired_pages/pending_blacklist"});
  if (pages.value_or(0) > 0) add_note(fmt::format("{} has {} retired pages", device.label(), pages.value()), inventory);
  if (pending.value_or(false)) add_note(fmt::format("{} retires a page at the next reset", device.label()), inventory);
}

/// A UUID holds letters, digits and dashes, so that it can be no label and no PCI address.
bool is_uuid(std::string_view text) {
  const auto fits = [](char c) {
    return c == '-' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  };
  return text.find('-') != std::string_view::npos && text.size() <= 80 && std::ranges::all_of(text, fits);
}

void give_id(Device& device, const Inventory& inventory) {
  const auto is_free = [&](const std::string& id) { return !inventory.find(id); };
  if (device.uuid.has_value() && is_uuid(device.uuid.value()) && is_free(device.uuid.value()))
    device.id = device.uuid.value();
  else if (device.kind == DeviceKind::gpu && device.pci.has_value() && is_free(device.pci.value()))
    device.id = device.pci.value();
  else
    device.id = device.label();
}

/// Of a GPU's processes, those that run in a partition move there.
void take_processes(const Element& gpu, const Element& partition, Status& status) {
  const auto instance = whole_of(partition, {"gpu_instance_id"}),
             compute = whole_of(partition, {"compute_instance_id"});
  if (instance.has_value() && compute.has_value())
    status.processes = processes_of(gpu, Instance{instance.value(), compute.value()});
}

void add_partitions(const Element& gpu, const Device& parent, int& index, Inventory& inventory) {
  const Element* list = gpu.child("mig_devices");
  if (!list) return;
  size_t room = kMostPartitions;
  for (const Element& part : list->children) {
    if (part.name != "mig_device" || room == 0) continue;
    --room;
    Device device;
    device.kind = DeviceKind::partition;
    device.index = index++;
    device.vendor = kVendor;
    device.model = parent.model;
    device.parent = parent.id;
    device.pci = parent.pci;
    device.architecture = parent.architecture;
    device.uuid = text_of(part, {"uuid"});
    device.multiprocessors = whole_of(part, {"device_attributes/shared/multiprocessor_count"});
    device.memory_bytes = bytes_of(part, {"fb_memory_usage/total"});
    device.status.memory_used_bytes = bytes_of(part, {"fb_memory_usage/used"});
    device.status.memory_reserved_bytes = bytes_of(part, {"fb_memory_usage/reserved"});
    device.status.ecc_uncorrected = sum_of(part, {"ecc_error_count/volatile_count/sram_uncorrectable"});
    take_processes(gpu, part, device.status);
    give_id(device, inventory);
    inventory.devices.push_back(std::move(device));
  }
}

void add_gpu(const Element& gpu, int index, Inventory& inventory) {
  Device device;
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.vendor = kVendor;
  read_identity(gpu, device);
  read_limits(gpu, device);
  read_status(gpu, device.status);
  if (const auto lost = lost_of(gpu)) {
    SetMissing visitor{*lost};
    Status::fields(device.status, visitor);
  }
  give_id(device, inventory);
  note_retired_pages(gpu, device, inventory);
  inventory.devices.push_back(std::move(device));
}

}  // namespace

Result<Inventory> import_smi_xml(const Text& text, const Element& root) {
  Inventory inventory;
  Driver driver{.vendor = kVendor};
  driver.version = text_of(root, {"driver_version"});
  driver.runtime_version = text_of(root, {"cuda_version"});
  inventory.drivers.push_back(std::move(driver));
  std::vector<const Element*> gpus;
  for (const Element& element : root.children)
    if (element.name == "gpu") gpus.push_back(&element);
  if (gpus.size() > kMostXmlGpus)
    return usage_error(fmt::format("{} has {} GPUs; at most {} are read", text.where, gpus.size(), kMostXmlGpus));
  for (const Element* gpu : gpus) add_gpu(*gpu, static_cast<int>(inventory.devices.size()), inventory);
  int partitions = 0;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const Device parent = inventory.devices[i];
    add_partitions(*gpus[i], parent, partitions, inventory);
  }
  if (const auto attached = whole_of(root, {"attached_gpus"});
      attached.has_value() && static_cast<size_t>(attached.value()) != gpus.size())
    add_note(fmt::format("{} GPUs are attached, and the source describes {}", attached.value(), gpus.size()),
             inventory);
  finish(text, "nvidia-smi -q -x", inventory);
  return inventory;
}

}  // namespace remuda::recorded

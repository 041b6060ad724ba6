#include "probe/nvml/read_device.h"

#include <array>
#include <bit>
#include <fmt/format.h>

#include "probe/nvml/ask.h"
#include "probe/nvml/processes.h"

namespace remuda::probe::nvml {
namespace {

constexpr double kMilli = 1e-3;

Reading<int> number(std::string_view what, const Reading<unsigned>& reading) { return fitting<int>(what, reading); }

/// A number for which 0 means that there is none.
Reading<int> positive(std::string_view what, const Reading<unsigned>& reading) {
  return then(reading, [&](unsigned value) -> Reading<int> {
    if (value == 0) return why(kNotSupported, what);
    return number(what, value);
  });
}

Reading<double> milli(const Reading<unsigned>& reading) {
  return then(reading, [](unsigned value) { return value * kMilli; });
}

Reading<bool> truth(const Reading<unsigned>& reading) {
  return then(reading, [](unsigned value) { return value != 0; });
}

/// A call that writes two values, of which only the first is used.
Reading<unsigned> first_of(std::string_view what, Code (*call)(Handle, unsigned*, unsigned*), Handle handle) {
  unsigned first = 0, second = 0;
  if (!call) return no_call(what);
  if (const Code code = call(handle, &first, &second); code != kSuccess) return why(code, what);
  return first;
}

void read_identity(const Lib& lib, Handle handle, Device& device) {
  device.model = ask_text("name", lib.name, handle).value_or("");
  device.uuid = ask_text("UUID", lib.uuid, handle);
  device.serial = ask_text("serial number", lib.serial, handle);
  device.pci = then(ask<PciInfo>("PCI address", lib.pci_info, handle), [](const PciInfo& pci) -> Reading<std::string> {
    const auto address = address_of(pci);
    return address ? Reading<std::string>(*address) : no_sense("PCI address");
  });
  device.minor = number("minor number", ask<unsigned>("minor number", lib.minor_number, handle));
}

void read_chip(const Lib& lib, Handle handle, Device& device) {
  const auto capability = read_capability(lib, handle);
  device.compute_capability =
      then(capability, [](Capability chip) { return fmt::format("{}.{}", chip.major, chip.minor); });
  const auto code = ask<unsigned>("architecture", lib.architecture, handle);
  auto name = code.has_value() ? architecture_name(code.value()) : std::nullopt;
  if (!name && capability.has_value()) name = architecture_name(capability.value());
  device.architecture = name               ? Reading<std::string>(*name)
                        : code.has_value() ? no_sense("architecture")
                                           : code.missing();
  const auto cores = ask<unsigned>("multiprocessors", lib.core_count, handle);
  device.multiprocessors = then(cores, [&](unsigned count) -> Reading<int> {
    const auto each = capability.has_value() ? cores_per_multiprocessor(capability.value()) : std::nullopt;
    if (!each) return no_sense("multiprocessors");
    return number("multiprocessors", count / static_cast<unsigned>(*each));
  });
}

void read_limits(const Lib& lib, Handle handle, Device& device) {
  const auto pcie = [&](const char* what, auto call) { return positive(what, ask<unsigned>(what, call, handle)); };
  device.pcie_generation_max = pcie("highest PCIe generation", lib.pcie_generation_max);
  device.pcie_generation_card = pcie("highest PCIe generation of the card", lib.pcie_generation_card);
  device.pcie_width_max = pcie("highest number of PCIe lanes", lib.pcie_width_max);
  device.power_limit_watts = milli(ask<unsigned>("power limit", lib.power_limit, handle));
  unsigned lowest = 0;
  device.power_limit_max_watts = milli(ask<unsigned>("highest power limit", lib.power_limit_range, handle, &lowest));
  const auto clock = [&](const char* what, unsigned which) {
    return positive(what, ask<unsigned>(what, lib.clock_max, handle, which));
  };
  device.sm_clock_max_mhz = clock("highest clock of the multiprocessors", kClockSm);
  device.memory_clock_max_mhz = clock("highest clock of the memory", kClockMemory);
}

void read_modes(const Lib& lib, Handle handle, Device& device) {
  device.partitioned = truth(first_of("partitioning", lib.mig_mode, handle));
  device.ecc = truth(first_of("ECC mode", lib.ecc_mode, handle));
  device.persistence = truth(ask<unsigned>("persistence mode", lib.persistence, handle));
  device.compute_mode = then(ask<unsigned>("compute mode", lib.compute_mode, handle), compute_mode_of);
}

std::vector<int> bits_of(std::span<const unsigned long> words) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<int> bits;
  for (size_t i = 0; i < words.size() * kBits; ++i)
    if (words[i / kBits] >> i % kBits & 1) bits.push_back(static_cast<int>(i));
  return bits;
}

void read_place(const Lib& lib, Handle handle, Device& device) {
  std::array<unsigned long, 64> cores{}, nodes{};
  if (lib.cpu_affinity && lib.cpu_affinity(handle, cores.size(), cores.data()) == kSuccess)
    if (auto near = bits_of(cores); !near.empty()) device.cores = std::move(near);
  if (lib.memory_affinity && lib.memory_affinity(handle, nodes.size(), nodes.data(), kScopeNode) == kSuccess)
    if (const auto near = bits_of(nodes); near.size() == 1) device.numa_node = near.front();
}

Reading<double> read_temperature(const Lib& lib, Handle handle) {
  constexpr const char* kWhat = "temperature";
  const auto newer = ask_versioned<Temperature>(kWhat, lib.temperature_v1, handle, {.sensor = kChipSensor}, 1);
  if (newer.has_value()) return newer.value().celsius;
  return then(ask<unsigned>(kWhat, lib.temperature, handle, kChipSensor), [](unsigned value) { return double(value); });
}

void read_errors(const Lib& lib, Handle handle, Status& status) {
  const auto ecc = [&](const char* what, unsigned type) {
    return fitting<int64_t>(what, ask<uint64_t>(what, lib.ecc_errors, handle, type, kEccSinceLoad));
  };
  status.ecc_corrected = ecc("corrected memory errors", kEccCorrected);
  status.ecc_uncorrected = ecc("uncorrected memory errors", kEccUncorrected);
  unsigned corrected = 0, uncorrected = 0, pending = 0;
  const auto failed = ask<unsigned>("remapped rows", lib.remapped_rows, handle, &corrected, &uncorrected, &pending);
  status.remapped_rows = then(failed, [&](unsigned) { return int64_t{corrected} + uncorrected; });
  status.remap_pending = then(failed, [&](unsigned) { return pending != 0; });
  status.remap_failed = truth(failed);
}

Reading<RecoveryAction> read_recovery_action(const Lib& lib, Handle handle) {
  constexpr const char* kWhat = "action to recover";
  if (!lib.field_values) return no_call(kWhat);
  FieldValue field{.id = kFieldRecoveryAction};
  const Code asked = lib.field_values(handle, 1, &field);
  if (const Code code = asked == kSuccess ? field.code : asked; code != kSuccess) return why(code, kWhat);
  if (field.type != kFieldTypeUnsigned) return no_sense(kWhat);
  return recovery_action_of(field.value);
}

void read_status(const Lib& lib, Handle handle, Status& status) {
  const auto use = ask<Utilization>("use", lib.utilization, handle);
  status.busy = then(use, [](const Utilization& percent) { return share("use", percent.gpu); });
  status.memory_busy = then(use, [](const Utilization& percent) { return share("use of memory", percent.memory); });
  status.power_watts = milli(ask<unsigned>("power", lib.power_usage, handle));
  status.energy_joules = then(ask<uint64_t>("energy", lib.energy, handle),
                              [](uint64_t millijoules) { return static_cast<double>(millijoules) * kMilli; });
  status.temperature_c = read_temperature(lib, handle);
  const auto clock = [&](const char* what, unsigned which) {
    return number(what, ask<unsigned>(what, lib.clock, handle, which));
  };
  status.sm_clock_mhz = clock("clock of the multiprocessors", kClockSm);
  status.memory_clock_mhz = clock("clock of the memory", kClockMemory);
  status.throttle = then(ask<uint64_t>("reasons for lower clocks", lib.throttle_reasons, handle), throttle_reasons_of);
  status.pcie_generation = positive("PCIe generation", ask<unsigned>("PCIe generation", lib.pcie_generation, handle));
  status.pcie_width = positive("PCIe lanes", ask<unsigned>("PCIe lanes", lib.pcie_width, handle));
  read_errors(lib, handle, status);
  status.recovery_action = read_recovery_action(lib, handle);
  status.processes = read_processes(lib, handle);
  if (auto processes = status.processes.value_or({}); !processes.empty()) {
    add_busy(lib, handle, processes);
    status.processes = std::move(processes);
  }
}

}  // namespace

Reading<Capability> read_capability(const Lib& lib, Handle handle) {
  Capability chip;
  return then(ask<int>("compute capability", lib.compute_capability, handle, &chip.major),
              [&](int minor) { return Capability{chip.major, minor}; });
}

void read_memory(const Lib& lib, Handle handle, Device& device) {
  constexpr const char* kWhat = "memory";
  const auto bytes = [](uint64_t value) { return fitting<int64_t>(kWhat, Reading<uint64_t>(value)); };
  const auto newer = ask_versioned<MemoryV2>(kWhat, lib.memory_v2, handle, {}, 2);
  if (newer.has_value() && newer.value().total > 0) {
    device.memory_bytes = bytes(newer.value().total);
    device.status.memory_used_bytes = bytes(newer.value().used);
    device.status.memory_reserved_bytes = bytes(newer.value().reserved);
    return;
  }
  const auto older = then(ask<Memory>(kWhat, lib.memory, handle), [](const Memory& memory) -> Reading<Memory> {
    return memory.total > 0 ? Reading<Memory>(memory) : why(kNotSupported, kWhat);
  });
  device.memory_bytes = then(older, [&](const Memory& memory) { return bytes(memory.total); });
  device.status.memory_used_bytes = then(older, [&](const Memory& memory) { return bytes(memory.used); });
  device.status.memory_reserved_bytes =
      lib.memory_v2 ? newer.has_value() ? why(kNotSupported, "reserved memory") : newer.missing()
                    : no_call("reserved memory");
}

void fill_place(const KernelFiles& files, Device& device) {
  if (!device.pci.has_value()) return;
  if (!device.cores.has_value()) device.cores = near_cores(files, device.pci.value());
  if (!device.numa_node.has_value()) device.numa_node = numa_node(files, device.pci.value());
}

Device read_gpu(const Context& context, OpenGpu& gpu) {
  const Lib& lib = context.lib;
  Device device{.kind = DeviceKind::gpu, .vendor = "NVIDIA"};
  read_identity(lib, gpu.handle, device);
  read_chip(lib, gpu.handle, device);
  read_memory(lib, gpu.handle, device);
  read_limits(lib, gpu.handle, device);
  read_modes(lib, gpu.handle, device);
  if (device.partitioned.value_or(false)) device.offers = read_offers(lib, gpu.handle, device);
  read_place(lib, gpu.handle, device);
  fill_place(context.files, device);
  read_status(lib, gpu.handle, device.status);
  gpu.counters[kWholeGpu].read(lib, gpu.handle, kWholeGpu, context.now_s, device.status);
  device.status.xid = gpu.xid.read(lib, gpu.handle);
  return device;
}

}  // namespace remuda::probe::nvml

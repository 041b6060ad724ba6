#include "device/sane.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "device/fields.h"

namespace remuda {
namespace {

/// What a number may be, by the key of its field.
struct Range {
  std::string_view key;
  double least, most;
  const char* unit = "";
};

constexpr double kMostWatts = 10e3;    // a whole GB200 NVL4 board is made for 5.4 kW (NVIDIA, 2024)
constexpr double kMostJoules = 10e12;  // that power for 30 years
constexpr double kMostMhz = 100e3;
constexpr double kMostBytes = 1e15;
constexpr double kMostCount = 1e9;  // a counter that is wrong has all its bits, or the upper ones

constexpr std::array kRanges{
    Range{"minor", 0, kMostCount},
    Range{"numa_node", 0, kMostCount},
    Range{"memory_bytes", 0, kMostBytes, " bytes"},
    Range{"multiprocessors", 1, 1e6},
    Range{"pcie_generation", 1, 15},  // 7 is the newest (PCI-SIG, 2025)
    Range{"pcie_generation_max", 1, 15},
    Range{"pcie_generation_card", 1, 15},
    Range{"pcie_width", 1, 32},  // the widest of the specification
    Range{"pcie_width_max", 1, 32},
    Range{"power_limit_watts", 0, kMostWatts, " W"},
    Range{"power_limit_max_watts", 0, kMostWatts, " W"},
    Range{"sm_clock_max_mhz", 0, kMostMhz, " MHz"},
    Range{"memory_clock_max_mhz", 0, kMostMhz, " MHz"},
    Range{"memory_used_bytes", 0, kMostBytes, " bytes"},
    Range{"memory_reserved_bytes", 0, kMostBytes, " bytes"},
    Range{"busy", 0, 1},
    Range{"memory_busy", 0, 1},
    Range{"sm_active", 0, 1},
    Range{"sm_occupancy", 0, 1},
    Range{"tensor_active", 0, 1},
    Range{"dram_active", 0, 1},
    Range{"power_watts", 0, kMostWatts, " W"},
    Range{"energy_joules", 0, kMostJoules, " J"},
    Range{"temperature_c", -55, 200, " C"},  // below it no chip is specified, above it none works
    Range{"sm_clock_mhz", 0, kMostMhz, " MHz"},
    Range{"memory_clock_mhz", 0, kMostMhz, " MHz"},
    Range{"ecc_corrected", 0, 1e15},
    Range{"ecc_uncorrected", 0, 1e15},
    Range{"remapped_rows", 0, kMostCount},
    Range{"xid", 0, kMostCount},
};

Missing no_sense(std::string_view key, double value, const char* unit) {
  return {MissingReason::unsupported, fmt::format("{}: {:.15g}{} makes no sense", key, value, unit)};
}

/// A visitor of fields(): numbers out of their range are missing.
struct DropImpossible {
  template <typename T>
  void operator()(const char* key, T& field, const char*, bool = false) {
    if constexpr (fields::Listed<T>)
      T::fields(field, *this);
    else if constexpr (fields::kIsReading<T>)
      check(key, field);
  }

 private:
  template <typename T>
  static void check(std::string_view key, Reading<T>& reading) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const auto* range = std::ranges::find(kRanges, key, &Range::key);
      if (!reading.has_value() || range == kRanges.end()) return;
      const auto value = static_cast<double>(reading.value());
      if (!(value >= range->least && value <= range->most)) reading = no_sense(key, value, range->unit);
    }
  }
};

/// A visitor of fields(): what is lost is an error of that reading alone.
struct FindAgain {
  template <typename T>
  void operator()(const char*, T& field, const char*, bool = false) {
    if constexpr (fields::Listed<T>)
      T::fields(field, *this);
    else if constexpr (fields::kIsReading<T>)
      if (!field.has_value() && field.missing().reason == MissingReason::lost)
        field = Missing{MissingReason::unsupported, field.missing().detail};
  }
};

/// Whether the device itself has measured something: a driver knows the rest by heart.
bool answers(const Status& status) {
  return status.memory_used_bytes.has_value() || status.busy.has_value() || status.memory_busy.has_value() ||
         status.power_watts.has_value() || status.energy_joules.has_value() || status.temperature_c.has_value() ||
         status.sm_clock_mhz.has_value() || status.memory_clock_mhz.has_value();
}

void drop_more_than(const Reading<int64_t>& all, std::string_view key, Reading<int64_t>& part) {
  if (all.has_value() && part.has_value() && part.value() > all.value())
    part = no_sense(key, static_cast<double>(part.value()), " bytes");
}

void make_sane(const Reading<int64_t>& memory, Status& status) {
  DropImpossible impossible;
  Status::fields(status, impossible);
  drop_more_than(memory, "memory_used_bytes", status.memory_used_bytes);
  drop_more_than(memory, "memory_reserved_bytes", status.memory_reserved_bytes);
  if (!status.processes.has_value()) return;
  std::vector<Process> processes = status.processes.value();
  for (Process& process : processes) {
    Process::fields(process, impossible);
    drop_more_than(memory, "memory_bytes", process.memory_bytes);
  }
  status.processes = Reading<std::vector<Process>>(std::move(processes), status.processes.time_s());
}

}  // namespace

void make_sane(Device& device) {
  DropImpossible impossible;
  Device::fields(device, impossible);
  make_sane(device.memory_bytes, device.status);
  FindAgain again;
  if (answers(device.status)) Device::fields(device, again);
}

void make_sane(Inventory& inventory) {
  for (Device& device : inventory.devices) make_sane(device);
  for (Sample& sample : inventory.samples)
    for (size_t i = 0; i < sample.devices.size(); ++i) {
      make_sane(inventory.devices[i].memory_bytes, sample.devices[i]);
      FindAgain again;
      if (answers(sample.devices[i])) Status::fields(sample.devices[i], again);
    }
}

}  // namespace remuda

// The status of a device: memory, utilization, power, heat, clocks, PCIe, memory errors.
#include <algorithm>
#include <array>
#include <cstddef>

#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {
namespace {

struct MemoryUse {
  unsigned long long total = 0, used = 0, reserved = 0;
};

Code memory_of(const Gpu& gpu, MemoryUse& use) {
  if (const Code code = give(gpu.device.memory_bytes, &use.total); code != kSuccess) return code;
  if (const Code code = give(gpu.device.status.memory_used_bytes, &use.used); code != kSuccess) return code;
  use.reserved = static_cast<unsigned long long>(gpu.device.status.memory_reserved_bytes.value_or(0));
  return kSuccess;
}

template <typename T>
Code give_status(Handle handle, Reading<T> Status::* field, unsigned* out, double per_unit = 1) {
  return ask(handle, out, [&](const Gpu& gpu) { return give(gpu.device.status.*field, out, per_unit); });
}

template <typename T>
Code give_fact(Handle handle, Reading<T> Device::* field, unsigned* out, double per_unit = 1) {
  return ask(handle, out, [&](const Gpu& gpu) { return give(gpu.device.*field, out, per_unit); });
}

Code nothing(Handle handle, const void* out) {
  return ask(handle, out, [](const Gpu&) { return kNotSupported; });
}

constexpr double kMilli = 1000;

Code give_throttle(Handle handle, unsigned long long* bits) {
  constexpr std::array words{"idle",    "application_clocks", "power_cap",   "hardware", "sync_boost",
                             "thermal", "hardware_thermal",   "power_brake", "display"};
  constexpr unsigned long long kOther = 1ull << 12;
  return ask(handle, bits, [&](const Gpu& gpu) {
    const Reading<std::vector<std::string>>& reasons = gpu.device.status.throttle;
    if (!reasons.has_value()) return code_of(reasons.missing());
    *bits = 0;
    for (const std::string& reason : reasons.value()) {
      const auto word = std::ranges::find(words, reason);
      *bits |= word == words.end() ? kOther : 1ull << (word - words.begin());
    }
    return kSuccess;
  });
}

/// A third of the rows, rounded down, counts as remapped after corrected errors; the rest after uncorrected ones.
Code give_rows(const Status& status, RemappedRowsV2& rows) {
  unsigned total = 0;
  if (const Code code = give(status.remapped_rows, &total); code != kSuccess) return code;
  rows = {
      total / 3, 0, total - total / 3, 0, status.remap_pending.value_or(false), status.remap_failed.value_or(false)};
  return kSuccess;
}

}  // namespace

NVML_EXPORT Code nvmlDeviceGetMemoryInfo(Handle handle, Memory* memory) {
  return ask(handle, memory, [&](const Gpu& gpu) {
    MemoryUse use;
    if (const Code code = memory_of(gpu, use); code != kSuccess) return code;
    *memory = {use.total, use.total - use.used - use.reserved, use.used + use.reserved};
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryV2* memory) {
  return ask(handle, memory, [&](const Gpu& gpu) {
    if (memory->version != version_of<MemoryV2>(2)) return kArgumentVersionMismatch;
    MemoryUse use;
    if (const Code code = memory_of(gpu, use); code != kSuccess) return code;
    *memory = {memory->version, use.total, use.reserved, use.total - use.used - use.reserved, use.used};
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetUtilizationRates(Handle handle, Utilization* use) {
  return ask(handle, use, [&](const Gpu& gpu) {
    const Status& status = gpu.device.status;
    use->memory = 0;
    if (status.memory_busy.has_value()) give(status.memory_busy, &use->memory, 100);
    return give(status.busy, &use->gpu, 100);
  });
}

NVML_EXPORT Code nvmlDeviceGetEncoderUtilization(Handle handle, unsigned* use, unsigned*) {
  return nothing(handle, use);
}
NVML_EXPORT Code nvmlDeviceGetDecoderUtilization(Handle handle, unsigned* use, unsigned*) {
  return nothing(handle, use);
}

NVML_EXPORT Code nvmlDeviceGetPowerUsage(Handle handle, unsigned* milliwatts) {
  return give_status(handle, &Status::power_watts, milliwatts, kMilli);
}

NVML_EXPORT Code nvmlDeviceGetEnforcedPowerLimit(Handle handle, unsigned* milliwatts) {
  return give_fact(handle, &Device::power_limit_watts, milliwatts, kMilli);
}

NVML_EXPORT Code nvmlDeviceGetPowerManagementLimit(Handle handle, unsigned* milliwatts) {
  return give_fact(handle, &Device::power_limit_watts, milliwatts, kMilli);
}

NVML_EXPORT Code nvmlDeviceGetPowerManagementDefaultLimit(Handle handle, unsigned* milliwatts) {
  return give_fact(handle, &Device::power_limit_max_watts, milliwatts, kMilli);
}

NVML_EXPORT Code nvmlDeviceGetPowerManagementLimitConstraints(Handle handle, unsigned* low, unsigned* high) {
  return ask(handle, all(low, high), [&](const Gpu& gpu) {
    *low = 0;
    return give(gpu.device.power_limit_max_watts, high, kMilli);
  });
}

NVML_EXPORT Code nvmlDeviceGetTotalEnergyConsumption(Handle handle, unsigned long long* millijoules) {
  return ask(handle, millijoules,
             [&](const Gpu& gpu) { return give(gpu.device.status.energy_joules, millijoules, kMilli); });
}

NVML_EXPORT Code nvmlDeviceGetTemperature(Handle handle, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return kInvalidArgument;
  return give_status(handle, &Status::temperature_c, celsius);
}

NVML_EXPORT Code nvmlDeviceGetTemperatureV(Handle handle, TemperatureV1* temperature) {
  return ask(handle, temperature, [&](const Gpu& gpu) {
    if (temperature->version != version_of<TemperatureV1>(1)) return kArgumentVersionMismatch;
    if (temperature->sensor != 0) return kInvalidArgument;
    return give(gpu.device.status.temperature_c, &temperature->temperature);
  });
}

NVML_EXPORT Code nvmlDeviceGetTemperatureThreshold(Handle handle, unsigned, unsigned* celsius) {
  return nothing(handle, celsius);
}

NVML_EXPORT Code nvmlDeviceGetFanSpeed(Handle handle, unsigned* percent) { return nothing(handle, percent); }
NVML_EXPORT Code nvmlDeviceGetFanSpeed_v2(Handle handle, unsigned, unsigned* percent) {
  return nothing(handle, percent);
}
NVML_EXPORT Code nvmlDeviceGetPowerState(Handle handle, unsigned* state) { return nothing(handle, state); }

NVML_EXPORT Code nvmlDeviceGetClockInfo(Handle handle, unsigned type, unsigned* mhz) {
  if (type == kMemoryClock) return give_status(handle, &Status::memory_clock_mhz, mhz);
  if (type == kSmClock || type == kGraphicsClock) return give_status(handle, &Status::sm_clock_mhz, mhz);
  return nothing(handle, mhz);
}

NVML_EXPORT Code nvmlDeviceGetMaxClockInfo(Handle handle, unsigned type, unsigned* mhz) {
  if (type == kMemoryClock) return give_fact(handle, &Device::memory_clock_max_mhz, mhz);
  if (type == kSmClock || type == kGraphicsClock) return give_fact(handle, &Device::sm_clock_max_mhz, mhz);
  return nothing(handle, mhz);
}

NVML_EXPORT Code nvmlDeviceGetCurrentClocksEventReasons(Handle handle, unsigned long long* bits) {
  return give_throttle(handle, bits);
}

NVML_EXPORT Code nvmlDeviceGetCurrentClocksThrottleReasons(Handle handle, unsigned long long* bits) {
  return give_throttle(handle, bits);
}

NVML_EXPORT Code nvmlDeviceGetCurrPcieLinkGeneration(Handle handle, unsigned* generation) {
  return give_status(handle, &Status::pcie_generation, generation);
}

NVML_EXPORT Code nvmlDeviceGetCurrPcieLinkWidth(Handle handle, unsigned* width) {
  return give_status(handle, &Status::pcie_width, width);
}

NVML_EXPORT Code nvmlDeviceGetMaxPcieLinkGeneration(Handle handle, unsigned* generation) {
  return give_fact(handle, &Device::pcie_generation_max, generation);
}

NVML_EXPORT Code nvmlDeviceGetGpuMaxPcieLinkGeneration(Handle handle, unsigned* generation) {
  return give_fact(handle, &Device::pcie_generation_card, generation);
}

NVML_EXPORT Code nvmlDeviceGetMaxPcieLinkWidth(Handle handle, unsigned* width) {
  return give_fact(handle, &Device::pcie_width_max, width);
}

NVML_EXPORT Code nvmlDeviceGetPcieThroughput(Handle handle, unsigned, unsigned* kilobytes) {
  return nothing(handle, kilobytes);
}

NVML_EXPORT Code nvmlDeviceGetEccMode(Handle handle, unsigned* current, unsigned* pending) {
  return ask(handle, all(current, pending), [&](const Gpu& gpu) {
    const Code code = give(gpu.device.ecc, current);
    if (code == kSuccess) *pending = *current;
    return code;
  });
}

NVML_EXPORT Code nvmlDeviceGetTotalEccErrors(Handle handle, unsigned type, unsigned, unsigned long long* errors) {
  return ask(handle, errors, [&](const Gpu& gpu) {
    const Status& status = gpu.device.status;
    return give(type == 0 ? status.ecc_corrected : status.ecc_uncorrected, errors);
  });
}

/// Supports one field: the action needed so that the GPU works again.
NVML_EXPORT Code nvmlDeviceGetFieldValues(Handle handle, int count, FieldValue* values) {
  constexpr std::array actions{RecoveryAction::none,        RecoveryAction::reset,           RecoveryAction::reboot,
                               RecoveryAction::drain_peers, RecoveryAction::drain_and_reset, RecoveryAction::other};
  return ask(handle, values, [&](const Gpu& gpu) {
    const Reading<RecoveryAction>& action = gpu.device.status.recovery_action;
    for (int i = 0; i < count; ++i) {
      FieldValue& value = values[i];
      value.code = value.field != kRecoveryActionField ? kNotSupported
                   : !action.has_value()               ? code_of(action.missing())
                                                       : kSuccess;
      if (value.code != kSuccess) continue;
      value.value_type = kUnsignedValue;
      value.value.number = static_cast<unsigned>(std::ranges::find(actions, action.value()) - actions.begin());
    }
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetRemappedRows_v2(Handle handle, RemappedRowsV2* rows) {
  return ask(handle, rows, [&](const Gpu& gpu) { return give_rows(gpu.device.status, *rows); });
}

NVML_EXPORT Code nvmlDeviceGetRemappedRows(Handle handle, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                           unsigned* failed) {
  return ask(handle, all(corrected, uncorrected, pending, failed), [&](const Gpu& gpu) {
    RemappedRowsV2 rows{};
    const Code code = give_rows(gpu.device.status, rows);
    if (code != kSuccess) return code;
    *corrected = rows.corrected;
    *uncorrected = rows.uncorrected;
    *pending = rows.pending;
    *failed = rows.failed;
    return kSuccess;
  });
}

}  // namespace remuda::tests::nvml

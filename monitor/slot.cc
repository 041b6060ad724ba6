#include "monitor/slot.h"

#include "device/throttle.h"

namespace remuda::monitor {
namespace {

constexpr bool keeps_peak(Measure measure) {
  return measure == Measure::memory_used_bytes || measure == Measure::temperature_c;
}

template <typename T>
float known(const Reading<T>& reading) {
  return reading.has_value() ? static_cast<float>(reading.value()) : kUnknown;
}

}  // namespace

Slot slot_of(const Status& status) {
  Slot slot;
  slot[Measure::busy] = known(status.busy);
  slot[Measure::memory_busy] = known(status.memory_busy);
  slot[Measure::sm_active] = known(status.sm_active);
  slot[Measure::tensor_active] = known(status.tensor_active);
  slot[Measure::dram_active] = known(status.dram_active);
  slot[Measure::memory_used_bytes] = known(status.memory_used_bytes);
  slot[Measure::power_watts] = known(status.power_watts);
  slot[Measure::temperature_c] = known(status.temperature_c);
  slot[Measure::sm_clock_mhz] = known(status.sm_clock_mhz);
  slot[Measure::throttled] = known(is_throttled(status));
  return slot;
}

void SlotSum::add(const Slot& slot) {
  for (const auto& [measure, _] : Words<Measure>::table) {
    const auto i = static_cast<size_t>(measure);
    const float value = slot.values[i];
    if (!std::isfinite(value)) continue;
    if (!keeps_peak(measure))
      totals_[i] += value;
    else if (known_[i] == 0 || value > totals_[i])
      totals_[i] = value;
    ++known_[i];
  }
}

Slot SlotSum::slot() const {
  Slot slot;
  for (const auto& [measure, _] : Words<Measure>::table) {
    const auto i = static_cast<size_t>(measure);
    if (known_[i] > 0) slot.values[i] = static_cast<float>(keeps_peak(measure) ? totals_[i] : totals_[i] / known_[i]);
  }
  return slot;
}

}  // namespace remuda::monitor

// Slot: what was measured of one device during one step of time, a second to a minute. Plain data.
//
// A value that nobody has measured is NaN, never 0. Steps combine to longer ones: of most measures the mean stays, of
// those whose peak matters (memory, temperature) the peak.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "device/device.h"
#include "device/words.h"

namespace remuda::monitor {

/// Their order is that of the values in a history's file: new ones come last.
enum class Measure {
  busy,               ///< share of time in which a kernel ran
  memory_busy,        ///< share of time in which device memory was read or written
  sm_active,          ///< share of multiprocessors with work
  tensor_active,      ///< share of time in which the tensor cores worked
  dram_active,        ///< share of the memory bandwidth in use
  memory_used_bytes,  ///< peak
  power_watts,
  temperature_c,  ///< peak
  sm_clock_mhz,
  throttled,  ///< share of time in which clocks were held down by heat, power or hardware
  waiting,    ///< share of time in which it waited for others of a run, as that reports
};

}  // namespace remuda::monitor

template <>
struct remuda::Words<remuda::monitor::Measure> {
  using M = monitor::Measure;
  static constexpr std::array table{std::pair{M::busy, "busy"},
                                    std::pair{M::memory_busy, "memory_busy"},
                                    std::pair{M::sm_active, "sm_active"},
                                    std::pair{M::tensor_active, "tensor_active"},
                                    std::pair{M::dram_active, "dram_active"},
                                    std::pair{M::memory_used_bytes, "memory_used_bytes"},
                                    std::pair{M::power_watts, "power_watts"},
                                    std::pair{M::temperature_c, "temperature_c"},
                                    std::pair{M::sm_clock_mhz, "sm_clock_mhz"},
                                    std::pair{M::throttled, "throttled"},
                                    std::pair{M::waiting, "waiting"}};
};

namespace remuda::monitor {

inline constexpr size_t kMeasures = Words<Measure>::table.size();
inline constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

struct Slot {
  std::array<float, kMeasures> values;

  Slot() { values.fill(kUnknown); }
  float& operator[](Measure measure) { return values[static_cast<size_t>(measure)]; }
  float operator[](Measure measure) const { return values[static_cast<size_t>(measure)]; }
};

/// What one reading of a device says; of waiting it says nothing.
Slot slot_of(const Status& status);

/// Combines slots into one: means and peaks of the known values.
class SlotSum {
 public:
  void add(const Slot& slot);
  Slot slot() const;

 private:
  std::array<double, kMeasures> totals_{};
  std::array<int, kMeasures> known_{};
};

}  // namespace remuda::monitor

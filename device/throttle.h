// Whether a device's clocks are held down for a cause that costs speed.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "device/device.h"

namespace remuda {

/// By heat, power or hardware: not because nothing runs, or because somebody asked for it.
inline Reading<bool> is_throttled(const Status& status) {
  constexpr std::array<std::string_view, 5> kHeldDown{"power_cap", "hardware", "thermal", "hardware_thermal",
                                                      "power_brake"};
  if (!status.throttle.has_value()) return status.throttle.missing();
  return std::ranges::any_of(status.throttle.value(), [&](const std::string& why) {
    return std::ranges::find(kHeldDown, why) != kHeldDown.end();
  });
}

}  // namespace remuda

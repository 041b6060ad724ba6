#include "snapshot/lease_use.h"

#include <algorithm>

#include "monitor/use.h"

namespace remuda::snapshot {

Json use_between(const Inventory& inventory, const std::string& id, double from_s, double to_s) {
  monitor::LeaseUse use;
  const auto found = std::ranges::find(inventory.devices, id, &Device::id);
  const auto index = static_cast<size_t>(found - inventory.devices.begin());
  Device device = found == inventory.devices.end() ? Device{} : *found;
  const std::vector<Sample>& samples = inventory.samples;
  for (size_t i = 0; i < samples.size() && found != inventory.devices.end(); ++i) {
    const double end_s = std::min(i + 1 < samples.size() ? samples[i + 1].time_s : samples[i].time_s, to_s);
    const double held_s = end_s - std::max(samples[i].time_s, from_s);
    if (held_s <= 0) continue;
    device.status = samples[i].devices[index];
    if (device.status.busy.has_value()) use.busy_s += device.status.busy.value() * held_s, use.busy_known_s += held_s;
    if (const auto effective = monitor::effectiveness(device); effective.has_value())
      use.effective_s += effective.value() * held_s, use.effective_known_s += held_s;
  }
  return {{"busy_s", use.busy_s},
          {"busy_known_s", use.busy_known_s},
          {"effective_s", use.effective_s},
          {"effective_known_s", use.effective_known_s}};
}

}  // namespace remuda::snapshot

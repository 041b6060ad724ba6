// Devices between two jobs: what is held back until it was looked over, and drained where it is not well.
#include <algorithm>
#include <iterator>

#include "agent/service.h"

namespace remuda::agent {
namespace {

/// Who drains devices, as people see it.
constexpr const char* kHandover = "remuda";

}  // namespace

std::vector<place::Held> Service::held_in(const pool::PoolState& state) const {
  std::vector<place::Held> held = view_.held_without_lease(state);
  std::ranges::move(handover_.held(state), std::back_inserter(held));
  std::ranges::move(offered_.held(), std::back_inserter(held));
  std::ranges::move(partitions_.held(), std::back_inserter(held));
  for (const std::string& device : enforcement_.closed())
    held.push_back({.device = device, .barred = "is closed to all: the driver does not report its device files"});
  return held;
}

/// What could not be recorded is tried again, and the device held back meanwhile. An administrator's drain stays.
void Service::hand_over(double now_s) {
  for (const Handover::Fault& fault : handover_.step(now_s)) {
    const std::vector<pool::Drain>& drains = pool_.seen().drains;
    const bool is_drained = std::ranges::find(drains, fault.device, &pool::Drain::device) != drains.end();
    if (is_drained || change(pool::DrainDevices{{fault.device}, fault.reason, kHandover}, now_s))
      handover_.drained(fault.device);
  }
}

}  // namespace remuda::agent

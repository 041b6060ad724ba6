// Held: a device, or part of one, that is in use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::place {

struct Held {
  std::string device;             ///< its id
  double share = 1;               ///< of the device
  std::string holder;             ///< for people: "alice (job 12)"
  std::optional<double> since_s;  ///< seconds since 1970
  std::optional<double> until_s;  ///< when it comes free, where that is known
  std::string barred;             ///< nobody holds it, and it must not be taken: "is drained: its fan is broken"
};

/// What the processes on the devices hold: each device with a computing process is held whole, by that process's user.
/// Processes that only draw on a screen hold nothing.
std::vector<Held> held_by_processes(const Inventory& inventory);

}  // namespace remuda::place

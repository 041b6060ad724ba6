// Held: a device, a part of one, or a part of the host that is in use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::place {

struct Held {
  std::string device;             ///< its id; empty: it is a part of the host
  double share = 1;               ///< of the device
  std::string holder;             ///< for people: "alice (job 12)"
  std::optional<double> since_s;  ///< seconds since 1970
  std::optional<double> until_s;  ///< when it comes free, where that is known
  std::string barred;             ///< nobody holds it, and it must not be taken: "is drained: its fan is broken"
  /// Of the host, in place of a device: cores, by the kernel's numbers, and memory (place/host.h).
  std::vector<int> cores;
  int64_t host_memory_bytes = 0;
};

/// What the processes on the devices hold: each device with a computing process is held whole, by that process's user.
/// Processes that only draw on a screen hold nothing.
std::vector<Held> held_by_processes(const Inventory& inventory);

}  // namespace remuda::place

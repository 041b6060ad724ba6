// Probe: one way of finding devices. Constructible everywhere, viable somewhere.
//
// A backend folder (probe/cpu, and later probe/nvml, probe/amd, probe/file) exports one factory in its probe.h and
// nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda {

class Probe {
 public:
  virtual ~Probe() = default;
  virtual const char* name() const = 0;
  /// Nothing when the probe can work here; otherwise one sentence that says why not.
  virtual std::optional<std::string> unviable() const = 0;
  virtual Result<std::vector<Device>> devices() = 0;
};

struct ProbeOptions {
  /// CPU devices to make in all: 0 = one per NUMA node. More than that splits the nodes' cores evenly.
  int cpu_devices = 0;
};

/// The live machine, from every probe that is viable here.
Result<Inventory> probe_machine(const ProbeOptions& options);

}  // namespace remuda

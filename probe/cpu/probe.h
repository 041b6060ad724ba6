// CPU devices: sets of whole cores, found by hwloc.
#pragma once

#include <memory>

#include "probe/probe.h"

namespace remuda::probe {

/// `cpu_devices` as in ProbeOptions.
std::unique_ptr<Probe> make_cpu_probe(int cpu_devices);

}  // namespace remuda::probe

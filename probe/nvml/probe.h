// The NVML probe: NVIDIA's GPUs, their links and processes, by libnvidia-ml.so.1.
//
// The library runs in a guarded child, which keeps it open from one find() to the next: a call
// that hangs or crashes costs that process, never this one. A GPU on which it happens is reported lost and left alone
// for a while; the others are read as ever. This process never loads the library.
//
// Not for several threads at once. Make the probe, and call it the first time, before the process has threads, from a
// thread that outlives it.
#pragma once

#include <memory>
#include <string>

#include "probe/probe.h"

namespace remuda::probe {

struct NvmlOptions {
  std::string library = "libnvidia-ml.so.1";
  std::string proc = "/proc", sys = "/sys";  ///< where the kernel's files are
  double step_s = 0;                         ///< seconds a GPU may take for one step; 0 = REMUDA_PROBE_TIMEOUT, or 5
  double start_s = 0;    ///< the same for the library's start and the first touch of a GPU; 0 = 4 times step_s
  double retry_s = 300;  ///< after so long a GPU that hung or crashed is tried again
};

std::unique_ptr<Probe> make_nvml_probe(NvmlOptions options = {});

}  // namespace remuda::probe

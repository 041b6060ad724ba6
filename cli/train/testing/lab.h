// A machine and jobs on it, for the tests of this folder.
#pragma once

#include <utility>
#include <vector>

#include "device/inventory.h"
#include "job/train_job.h"

namespace remuda::cli {

/// An A100 with memory, a T4 without, and a CPU device.
inline Inventory lab() {
  Inventory inventory{.host = "lab",
                      .devices = {{.id = "GPU-a",
                                   .kind = DeviceKind::gpu,
                                   .vendor = "NVIDIA",
                                   .model = "A100",
                                   .compute_capability = "8.0",
                                   .memory_bytes = int64_t{40} << 30,
                                   .multiprocessors = 108,
                                   .sm_clock_max_mhz = 1410},
                                  {.id = "GPU-b",
                                   .kind = DeviceKind::gpu,
                                   .index = 1,
                                   .vendor = "NVIDIA",
                                   .model = "T4",
                                   .compute_capability = "7.5",
                                   .multiprocessors = 40,
                                   .sm_clock_max_mhz = 1590},
                                  {.id = "cpu:0", .model = "EPYC", .cores = std::vector{0, 1}}}};
  inventory.devices[0].status.memory_used_bytes = int64_t{10} << 30;
  return inventory;
}

inline job::TrainJob job_on(std::vector<job::DeviceSpec> devices) {
  job::TrainJob job;
  job.model.name = "mlp";
  job.train.global_batch = 120;
  job.devices = std::move(devices);
  return job;
}

}  // namespace remuda::cli

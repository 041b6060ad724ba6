// Processes that use AMD GPUs, as KFD counts them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"
#include "probe/known_processes.h"

namespace remuda::probe::amd {

struct KfdProcess {
  Process process;                              ///< without the memory it holds
  std::map<uint64_t, Reading<int64_t>> memory;  ///< bytes, by gpu_id of KFD
  std::set<uint64_t> queues;                    ///< gpu_ids it has a compute queue on
};

/// Missing when the driver shows no processes. Processes of other pid namespaces are included, by number.
Reading<std::vector<KfdProcess>> read_processes(const std::string& sysfs, KnownProcesses& known);

/// The processes that hold memory of one of `gpu_ids`, or have a queue there; their memory is the sum over these GPUs.
std::vector<Process> users_of(const std::set<uint64_t>& gpu_ids, const std::vector<KfdProcess>& all);

}  // namespace remuda::probe::amd

// Processes on a GPU, as NVML lists them: pid, kind, memory, share of time. probe/process.h adds user, command and
// start.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "device/device.h"
#include "probe/nvml/lib.h"

namespace remuda::probe::nvml {

/// How long the records of this driver are: 16, 24 or 32 bytes (abi.h, ProcessInfo). Under the same symbol some drivers
/// of the 535 series write 32; they are recognised by having nvmlDeviceGetConfComputeMemSizeInfo and not
/// nvmlDeviceGetRunningProcessDetailList (as nvitop found out).
size_t record_size(const Lib& lib);

/// The first `count` records of `bytes`. Where records of `size` make no sense (a pid or an instance that cannot
/// exist), but those of the other size under the same symbol do, the other size is used.
std::vector<ProcessInfo> read_records(std::span<const std::byte> bytes, size_t count, size_t size);

/// The processes of a GPU, or of one instance of it: `handle` is the GPU's or the instance's, `instance` is kWholeGpu
/// or the id that records must carry. By pid; a process in several lists is returned once. User, command and start are
/// not read.
Reading<std::vector<Process>> read_processes(const Lib& lib, Handle handle, unsigned instance = kWholeGpu);

/// Gives each process its share of the GPU's time in the last two seconds. The driver samples those that used some
/// (documentation of nvmlDeviceGetProcessUtilization): the others used none. Without any sample no process's share is
/// known.
void add_busy(const Lib& lib, Handle handle, std::vector<Process>& processes);

}  // namespace remuda::probe::nvml

// Processes that use a device. Compiled once for each layout of the struct of the newest process lists:
// REMUDA_NEWEST_PROCESS is ProcessV2, or ProcessDetail as in some drivers of the 535 series.
#include <algorithm>
#include <chrono>

#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {
namespace {

using Newest = REMUDA_NEWEST_PROCESS;

enum Mode : unsigned { kCompute = 0, kGraphics = 1, kShared = 2, kAll = 3 };

bool is_of(const Process& process, unsigned mode) {
  const unsigned own = process.type == "graphics" ? kGraphics : process.type == "shared" ? kShared : kCompute;
  return mode == kAll || mode == own;
}

bool holds(const Gpu& gpu, int pid) {
  return std::ranges::any_of(gpu.device.status.processes.value_or({}),
                             [&](const Process& process) { return process.pid == pid; });
}

/// The instance in which the process runs: the one asked for, or one of the whole GPU's. Nothing where there is none.
const Gpu* instance_of(const Gpu& asked, int pid) {
  if (asked.parent) return &asked;
  const auto found = std::ranges::find_if(asked.instances, [&](const auto& instance) { return holds(*instance, pid); });
  return found == asked.instances.end() ? nullptr : found->get();
}

template <typename T>
T entry_of(const Process& process, const Gpu& asked) {
  T entry{};
  entry.pid = static_cast<unsigned>(process.pid);
  entry.used_memory = kNotAvailable;
  if (process.memory_bytes.has_value())
    entry.used_memory = static_cast<unsigned long long>(process.memory_bytes.value());
  if constexpr (requires { entry.gpu_instance; }) {
    const Gpu* instance = instance_of(asked, process.pid);
    entry.gpu_instance = instance ? instance->gpu_instance : kNoInstance;
    entry.compute_instance = instance ? instance->compute_instance : kNoInstance;
  }
  return entry;
}

/// As in the interface: `*count` is the room on entry and the number on return; with too little room the call fails,
/// and `*count` is the room needed.
template <typename T>
Code give_list(const std::vector<T>& entries, unsigned* count, T* out) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(entries.size());
  if (entries.size() > room) return kInsufficientSize;
  if (!entries.empty() && !out) return kInvalidArgument;
  std::ranges::copy(entries, out);
  return kSuccess;
}

template <typename T>
Code give_processes(const Gpu& gpu, unsigned mode, unsigned* count, T* out) {
  const Reading<std::vector<Process>>& processes = gpu.device.status.processes;
  if (!processes.has_value()) return code_of(processes.missing());
  std::vector<T> entries;
  for (const Process& process : processes.value())
    if (is_of(process, mode)) entries.push_back(entry_of<T>(process, gpu));
  return give_list(entries, count, out);
}

template <typename T>
Code list(Handle handle, unsigned mode, unsigned* count, T* out) {
  return ask(handle, count, [&](const Gpu& gpu) { return give_processes(gpu, mode, count, out); });
}

unsigned long long now_us() {
  using std::chrono::microseconds;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<unsigned long long>(std::chrono::duration_cast<microseconds>(since_1970).count());
}

/// One sample of each process whose share of the device's time is recorded, taken right now.
template <typename T>
Code samples_of(const Gpu& gpu, std::vector<T>& samples) {
  const Reading<std::vector<Process>>& processes = gpu.device.status.processes;
  if (gpu.parent || gpu.device.partitioned.value_or(false)) return kNotSupported;
  if (!processes.has_value()) return code_of(processes.missing());
  for (const Process& process : processes.value()) {
    if (!process.busy.has_value()) continue;
    T sample{};
    sample.pid = static_cast<unsigned>(process.pid);
    sample.time_us = now_us();
    give(process.busy, &sample.sm, 100);
    samples.push_back(sample);
  }
  return samples.empty() ? kNotFound : kSuccess;
}

}  // namespace

/// The three ages of one call, each with a struct of its own.
#define REMUDA_PROCESS_LISTS(call, mode)                                                                           \
  NVML_EXPORT Code call(Handle handle, unsigned* count, ProcessV1* out) { return list(handle, mode, count, out); } \
  NVML_EXPORT Code call##_v2(Handle handle, unsigned* count, ProcessV2* out) {                                     \
    return list(handle, mode, count, out);                                                                         \
  }                                                                                                                \
  NVML_EXPORT Code call##_v3(Handle handle, unsigned* count, Newest* out) { return list(handle, mode, count, out); }

REMUDA_PROCESS_LISTS(nvmlDeviceGetComputeRunningProcesses, kCompute)
REMUDA_PROCESS_LISTS(nvmlDeviceGetGraphicsRunningProcesses, kGraphics)
REMUDA_PROCESS_LISTS(nvmlDeviceGetMPSComputeRunningProcesses, kShared)

NVML_EXPORT Code nvmlDeviceGetRunningProcessDetailList(Handle handle, ProcessDetailList* list) {
  return ask(handle, list, [&](const Gpu& gpu) {
    if (list->version != version_of<ProcessDetailList>(1)) return kArgumentVersionMismatch;
    if (list->mode > kAll) return kInvalidArgument;
    return give_processes(gpu, list->mode, &list->count, list->processes);
  });
}

/// Its presence without the detail list shows that the layout is the larger one.
NVML_EXPORT Code nvmlDeviceGetConfComputeMemSizeInfo(Handle handle, ConfComputeMemory* memory) {
  return ask(handle, memory, [](const Gpu&) { return kNotSupported; });
}

NVML_EXPORT Code nvmlDeviceGetProcessUtilization(Handle handle, ProcessSample* out, unsigned* count,
                                                 unsigned long long last_seen_us) {
  return ask(handle, count, [&](const Gpu& gpu) {
    std::vector<ProcessSample> samples;
    if (const Code code = samples_of(gpu, samples); code != kSuccess) return code;
    if (samples.front().time_us <= last_seen_us) return kNotFound;
    return give_list(samples, count, out);
  });
}

NVML_EXPORT Code nvmlDeviceGetProcessesUtilizationInfo(Handle handle, ProcessSamples* out) {
  return ask(handle, out, [&](const Gpu& gpu) {
    if (out->version != version_of<ProcessSamples>(1)) return kArgumentVersionMismatch;
    std::vector<ProcessSampleV2> samples;
    if (const Code code = samples_of(gpu, samples); code != kSuccess) return code;
    if (samples.front().time_us <= out->last_seen_us) return kNotFound;
    return give_list(samples, &out->count, out->samples);
  });
}

}  // namespace remuda::tests::nvml

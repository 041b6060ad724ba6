#include "probe/nvml/processes.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>

#include "probe/nvml/ask.h"

namespace remuda::probe::nvml {
namespace {

constexpr size_t kSmall = 16, kUsual = 24, kLarge = 32;
constexpr unsigned kMaxRecords = 1 << 16;
constexpr unsigned kHighestPid = 1 << 22;  // the kernel's PID_MAX_LIMIT
constexpr unsigned kInstances = 64;        // more than any GPU can be cut into
constexpr unsigned long long kLatelyUs = 2'000'000;

using List = Code (*)(Handle, unsigned*, void*);

std::vector<ProcessInfo> cut(std::span<const std::byte> bytes, size_t count, size_t size) {
  std::vector<ProcessInfo> records;
  for (size_t i = 0; i < count && (i + 1) * size <= bytes.size(); ++i) {
    ProcessInfo record{.gpu_instance = kWholeGpu, .compute_instance = kWholeGpu};
    std::memcpy(&record, bytes.data() + i * size, size);
    records.push_back(record);
  }
  return records;
}

bool is_plausible(const ProcessInfo& record) {
  return record.pid > 0 && record.pid <= kHighestPid &&
         (record.gpu_instance == kWholeGpu || record.gpu_instance < kInstances);
}

Reading<std::vector<ProcessInfo>> read_list(List newer, List oldest, size_t size, Handle handle) {
  constexpr const char* kWhat = "processes";
  const List list = size == kSmall ? oldest : newer;
  if (!list) return no_call(kWhat);
  unsigned capacity = 32;
  for (;;) {
    std::vector<std::byte> bytes(capacity * kLarge);
    unsigned count = capacity;
    const Code code = list(handle, &count, bytes.data());
    if (code == kSuccess) return read_records(bytes, std::min(count, capacity), size);
    if (code != kInsufficientSize || capacity >= kMaxRecords) return why(code, kWhat);
    capacity = std::min(std::max(count, capacity) * 2, kMaxRecords);
  }
}

Process process_of(const ProcessInfo& record, const char* type) {
  Process process{.pid = static_cast<int>(record.pid), .type = type};
  const Reading<uint64_t> used = record.used_memory;
  process.memory_bytes = record.used_memory == UINT64_MAX ? why(kNotSupported, "memory of a process")
                                                          : fitting<int64_t>("memory of a process", used);
  return process;
}

void add(const Reading<std::vector<ProcessInfo>>& records, const char* type, unsigned instance,
         std::vector<Process>& processes) {
  for (const ProcessInfo& record : records.value_or({})) {
    const bool belongs = instance == kWholeGpu || record.gpu_instance == kWholeGpu || record.gpu_instance == instance;
    if (belongs && is_plausible(record)) processes.push_back(process_of(record, type));
  }
}

/// The latest share of the multiprocessors of each pid that has a sample, in percent.
Reading<std::map<unsigned, unsigned>> read_utilization(const Lib& lib, Handle handle) {
  constexpr const char* kWhat = "share of time of a process";
  if (!lib.process_utilization) return no_call(kWhat);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const auto since = static_cast<unsigned long long>(now_us) - kLatelyUs;
  std::vector<ProcessSample> samples;
  unsigned count = 0;
  Code code = lib.process_utilization(handle, nullptr, &count, since);
  if (code == kInsufficientSize) {
    samples.resize(std::min(count, kMaxRecords) + 16);  // a few more may have been added meanwhile
    count = static_cast<unsigned>(samples.size());
    code = lib.process_utilization(handle, samples.data(), &count, since);
  }
  if (code != kSuccess && code != kNotFound) return why(code, kWhat);
  samples.resize(code == kNotFound ? 0 : std::min<size_t>(count, samples.size()));
  if (samples.empty())
    return Missing{MissingReason::unsupported, fmt::format("{}: the driver has no sample of the last 2 s", kWhat)};
  std::ranges::sort(samples, {}, &ProcessSample::time_us);
  std::map<unsigned, unsigned> latest;
  for (const ProcessSample& sample : samples) latest[sample.pid] = sample.sm;
  return latest;
}

}  // namespace

size_t record_size(const Lib& lib) {
  if (!lib.compute_processes) return kSmall;
  return lib.protected_memory_info && !lib.process_details ? kLarge : kUsual;
}

std::vector<ProcessInfo> read_records(std::span<const std::byte> bytes, size_t count, size_t size) {
  std::vector<ProcessInfo> records = cut(bytes, count, size);
  if (size == kSmall || std::ranges::all_of(records, is_plausible)) return records;
  std::vector<ProcessInfo> others = cut(bytes, count, size == kUsual ? kLarge : kUsual);
  return std::ranges::all_of(others, is_plausible) ? others : records;
}

Reading<std::vector<Process>> read_processes(const Lib& lib, Handle handle, unsigned instance) {
  const size_t size = record_size(lib);
  const auto compute = read_list(lib.compute_processes, lib.compute_processes_v1, size, handle);
  if (!compute.has_value()) return compute.missing();
  std::vector<Process> processes;
  add(read_list(lib.mps_processes, lib.mps_processes_v1, size, handle), "shared", instance, processes);
  add(compute, "compute", instance, processes);
  add(read_list(lib.graphics_processes, lib.graphics_processes_v1, size, handle), "graphics", instance, processes);
  std::ranges::stable_sort(processes, {}, &Process::pid);
  const auto again = std::ranges::unique(processes, {}, &Process::pid);
  processes.erase(again.begin(), again.end());
  return processes;
}

void add_busy(const Lib& lib, Handle handle, std::vector<Process>& processes) {
  if (processes.empty()) return;
  const auto latest = read_utilization(lib, handle);
  for (Process& process : processes) {
    process.busy = then(latest, [&](const std::map<unsigned, unsigned>& percent) {
      const auto mentioned = percent.find(static_cast<unsigned>(process.pid));
      return mentioned == percent.end() ? Reading<double>(0.0) : share("share of time of a process", mentioned->second);
    });
  }
}

}  // namespace remuda::probe::nvml

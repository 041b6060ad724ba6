#include "probe/amd/processes.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/number.h"
#include "probe/sysfs.h"

namespace remuda::probe::amd {
namespace {

KfdProcess read_process(const std::string& folder, int pid, KnownProcesses& known) {
  constexpr std::string_view kMemory = "vram_";
  constexpr int64_t kMost = int64_t{1} << 50;
  KfdProcess found;
  found.process = known.describe(pid);
  found.process.type = "compute";
  for (const std::string& name : sysfs::entries(folder)) {
    if (!name.starts_with(kMemory)) continue;
    const auto gpu = parse_number<int64_t>(std::string_view(name).substr(kMemory.size()));
    if (!gpu || *gpu <= 0) continue;
    found.memory[static_cast<uint64_t>(*gpu)] = sysfs::read_integer(fmt::format("{}/{}", folder, name), 0, kMost);
  }
  for (const int queue : sysfs::numbered(folder + "/queues", "")) {
    const auto gpu = sysfs::read_integer(fmt::format("{}/queues/{}/gpuid", folder, queue), 1);
    if (gpu.has_value()) found.queues.insert(static_cast<uint64_t>(gpu.value()));
  }
  return found;
}

bool uses(const KfdProcess& process, uint64_t gpu) {
  const auto memory = process.memory.find(gpu);
  return process.queues.contains(gpu) || (memory != process.memory.end() && memory->second.value_or(0) > 0);
}

Reading<int64_t> memory_of(const std::set<uint64_t>& gpu_ids, const KfdProcess& process) {
  Reading<int64_t> sum;
  for (const auto& [gpu, memory] : process.memory) {
    if (!gpu_ids.contains(gpu)) continue;
    if (!memory.has_value()) return memory;
    sum = sum.value_or(0) + memory.value();
  }
  return sum;
}

}  // namespace

Reading<std::vector<KfdProcess>> read_processes(const std::string& sysfs, KnownProcesses& known) {
  const std::string all = sysfs + "/class/kfd/kfd/proc";
  if (!sysfs::exists(all)) return Missing{MissingReason::unsupported, fmt::format("there is no {}", all)};
  std::vector<KfdProcess> processes;
  for (const int pid : sysfs::numbered(all, ""))
    processes.push_back(read_process(fmt::format("{}/{}", all, pid), pid, known));
  known.forget_others();
  return processes;
}

std::vector<Process> users_of(const std::set<uint64_t>& gpu_ids, const std::vector<KfdProcess>& all) {
  std::vector<Process> users;
  for (const KfdProcess& candidate : all) {
    if (std::ranges::none_of(gpu_ids, [&](uint64_t gpu) { return uses(candidate, gpu); })) continue;
    users.push_back(candidate.process);
    users.back().memory_bytes = memory_of(gpu_ids, candidate);
  }
  return users;
}

}  // namespace remuda::probe::amd

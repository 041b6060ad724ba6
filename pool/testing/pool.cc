#include "pool/testing/pool.h"

#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace remuda::pool {

namespace {

std::filesystem::path memory_or_disk() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

}  // namespace

TestFolder::TestFolder() : ScratchFolder(memory_or_disk()) {}

Inventory test_box(int gpus) {
  Inventory inventory;
  inventory.host = "box";
  for (int i = 0; i < gpus; ++i) {
    Device device;
    device.id = fmt::format("gpu:{}", i);
    device.kind = DeviceKind::gpu;
    device.index = i;
    device.model = "Test 1000";
    device.numa_node = i / 2;
    device.memory_bytes = int64_t{16} << 30;
    inventory.devices.push_back(device);
    for (int j = 0; j < i; ++j)
      inventory.links.push_back(
          {.a = fmt::format("gpu:{}", j), .b = device.id, .path = i / 2 == j / 2 ? Path::phb : Path::sys});
  }
  for (int node = 0; node < (gpus + 1) / 2; ++node)
    inventory.numa.push_back({.node = node,
                              .cores = std::vector{4 * node, 4 * node + 1, 4 * node + 2, 4 * node + 3},
                              .memory_bytes = int64_t{16} << 30});
  return inventory;
}

Job test_job(const std::string& user, int count, double share) {
  Job job;
  job.user = user;
  job.uid = static_cast<int>(user.front());
  job.request.count = count;
  job.request.share = share;
  job.keeper = process::own_process_id();
  job.command = {"true"};
  return job;
}

void PrintTo(const Job& job, std::ostream* stream) { *stream << to_line(to_json(job)); }

void PrintTo(const PoolState& state, std::ostream* stream) {
  *stream << "next " << state.next_job;
  for (const Job& job : state.jobs) *stream << "\n  " << to_line(to_json(job));
  for (const Lease& lease : state.leases) *stream << fmt::format("\n  {} {} {}", lease.job, lease.device, lease.share);
}

}  // namespace remuda::pool

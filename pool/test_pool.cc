#include "pool/test_pool.h"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"

namespace remuda {

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
  return inventory;
}

Job test_job(const std::string& user, int count, double share) {
  Job job;
  job.user = user;
  job.uid = static_cast<int>(user.front());
  job.request.count = count;
  job.request.share = share;
  job.keeper = own_process_id();
  job.command = {"true"};
  return job;
}

void PrintTo(const Job& job, std::ostream* stream) { *stream << to_line(to_json(job)); }

void PrintTo(const PoolState& state, std::ostream* stream) {
  *stream << "next " << state.next_job;
  for (const Job& job : state.jobs) *stream << "\n  " << to_line(to_json(job));
  for (const Lease& lease : state.leases) *stream << fmt::format("\n  {} {} {}", lease.job, lease.device, lease.share);
}

ChildEnd in_child(const std::function<std::string(const Say& say)>& work) {
  int ends[2];
  REMUDA_CHECK(::pipe(ends) == 0, "a pipe can be made");
  Fd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  REMUDA_CHECK(child >= 0, "a process can be forked");
  if (child == 0) {
    const Say say = [&](const std::string& words) { (void)write_all(writing.get(), words, "a pipe"); };
    say(work(say));
    ::_exit(0);
  }
  writing.reset();
  ChildEnd end;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;) end.said.append(buffer, got);
  REMUDA_CHECK(::waitpid(child, &end.status, 0) == child, "a child can be waited for");
  return end;
}

ChildEnd with_own_mounts(const std::function<std::string()>& work) {
  return in_child([&](const Say&) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "skip: no mounts of its own (" + errno_text(errno) + ")";
    return work();
  });
}

}  // namespace remuda

#include "doctor/gather.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/text.h"
#include "doctor/pci_tree.h"

namespace remuda::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstPidNamespace = "pid:[4026531836]";  ///< PROC_PID_INIT_INO of the kernel: never changes
constexpr int kMostCores = 1 << 16;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Names in a folder, sorted; none when it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<GpuSlot> read_slots(const Inventory& inventory, const std::string& root) {
  std::vector<GpuSlot> slots;
  for (const Device& device : inventory.devices)
    if (device.kind == DeviceKind::gpu && device.pci.has_value()) slots.push_back(read_slot(root, device.pci.value()));
  return slots;
}

std::string group_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return "";
  const group* owner = ::getgrgid(info.st_gid);
  return owner ? printable(owner->gr_name) : std::to_string(info.st_gid);
}

/// nvidia0, nvidia1 and so on: nvidia-caps and nvidia-modeset are for other purposes.
bool is_device_file(const std::string& name) {
  constexpr std::string_view kNvidia = "nvidia";
  if (name == "kfd" || name == "nvidiactl" || name == "nvidia-uvm" || name.starts_with("renderD")) return true;
  return name.starts_with(kNvidia) && name.size() > kNvidia.size() &&
         std::ranges::all_of(name.substr(kNvidia.size()), [](char digit) { return digit >= '0' && digit <= '9'; });
}

std::vector<DeviceFile> read_device_files(const std::string& root) {
  std::vector<DeviceFile> files;
  for (const std::string folder : {"/dev", "/dev/dri"})
    for (const std::string& name : names_in(root + folder)) {
      const std::string path = fmt::format("{}{}/{}", root, folder, name);
      if (!is_device_file(name)) continue;
      files.push_back({path.substr(root.size()), ::access(path.c_str(), R_OK | W_OK) == 0, group_of(path)});
    }
  return files;
}

std::vector<int> read_gone_pids(const Inventory& inventory) {
  std::set<int> gone;
  for (const Device& device : inventory.devices)
    for (const Process& process : device.status.processes.value_or({}))
      if (process.pid > 0 && ::kill(process.pid, 0) != 0 && errno == ESRCH) gone.insert(process.pid);
  return {gone.begin(), gone.end()};
}

Reading<std::vector<int>> read_cores() {
  cpu_set_t* set = CPU_ALLOC(kMostCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  std::vector<int> cores;
  if (::sched_getaffinity(0, bytes, set) == 0)
    for (int core = 0; core < kMostCores; ++core)
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(core);
  CPU_FREE(set);
  if (cores.empty()) return Missing{MissingReason::denied, "the kernel does not report this process's cores"};
  return cores;
}

Reading<bool> read_sharing_daemon(const std::string& root) {
  for (const std::string& name : names_in(root + "/proc")) {
    if (name[0] < '1' || name[0] > '9') continue;
    const auto command = read_text(fmt::format("{}/proc/{}/comm", root, name), 64);
    if (command && command->starts_with("nvidia-cuda-mps")) return true;
  }
  return false;
}

bool read_container(const std::string& root) {
  if (exists(root + "/.dockerenv") || exists(root + "/run/.containerenv") || exists(root + "/run/systemd/container"))
    return true;
  const std::string groups = read_text(root + "/proc/1/cgroup", 1 << 16).value_or("");
  return std::ranges::any_of(std::initializer_list<const char*>{"docker", "kubepods", "containerd", "lxc"},
                             [&](const char* word) { return groups.find(word) != std::string::npos; });
}

Reading<bool> read_host_pids(const std::string& root) {
  std::error_code error;
  const fs::path space = fs::read_symlink(root + "/proc/self/ns/pid", error);
  if (error) return Missing{MissingReason::unsupported, "the kernel does not report this process's pid namespace"};
  return space.string() == kFirstPidNamespace;
}

Reading<int64_t> read_shm(const std::string& root) {
  struct statvfs info{};
  if (::statvfs((root + "/dev/shm").c_str(), &info) != 0)
    return Missing{MissingReason::unsupported, fmt::format("/dev/shm cannot be asked: {}", errno_text(errno))};
  return static_cast<int64_t>(info.f_blocks * info.f_frsize);
}

Reading<int64_t> read_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0)
    return Missing{MissingReason::unsupported, fmt::format("the limit is not known: {}", errno_text(errno))};
  if (limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnlimited));
}

}  // namespace

HostFacts gather_facts(const Inventory& inventory, const std::string& root) {
  return {.slots = read_slots(inventory, root),
          .device_files = read_device_files(root),
          .gone_pids = read_gone_pids(inventory),
          .cores = read_cores(),
          .device_order = env::get(env::cuda_device_order).value_or(""),
          .sharing_daemon = read_sharing_daemon(root),
          .container = read_container(root),
          .host_pids = read_host_pids(root),
          .shm_bytes = read_shm(root),
          .memlock_bytes = read_limit(RLIMIT_MEMLOCK),
          .open_files = read_limit(RLIMIT_NOFILE)};
}

}  // namespace remuda::doctor

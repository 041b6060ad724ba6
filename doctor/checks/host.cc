#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/checks.h"

namespace remuda::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kUsualInContainer = 64 * kMiB;  ///< docker's default
constexpr int64_t kEnoughShm = 1024 * kMiB;
constexpr int64_t kEnoughLocked = 1024 * kMiB;
constexpr int64_t kEnoughFiles = 4096;

std::string human(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

Diagnoses check_shared_memory(const Inventory&, const HostFacts& facts) {
  if (!facts.shm_bytes.has_value()) return {skip_for(facts.shm_bytes)};
  const int64_t bytes = facts.shm_bytes.value();
  const char* remedy = facts.container.value_or(false) ? "start the container with --shm-size=8g, or with --ipc=host"
                                                       : "sudo mount -o remount,size=8g /dev/shm";
  if (bytes <= kUsualInContainer)
    return {fail(fmt::format("/dev/shm has {}: data loaders and ranks that share memory run out of it", human(bytes)),
                 remedy)};
  if (bytes < kEnoughShm)
    return {warn(fmt::format("/dev/shm has {}, little for data loaders and ranks that share memory", human(bytes)),
                 remedy)};
  return {pass(fmt::format("/dev/shm has {}", human(bytes)))};
}

Diagnoses check_locked_memory(const Inventory& inventory, const HostFacts& facts) {
  if (!facts.memlock_bytes.has_value()) return {skip_for(facts.memlock_bytes)};
  const int64_t bytes = facts.memlock_bytes.value();
  if (bytes == kUnlimited) return {pass("memory may be locked without limit")};
  if (bytes >= kEnoughLocked) return {pass(fmt::format("{} of memory may be locked", human(bytes)))};
  if (gpus(inventory).empty() && inventory.nics.empty())
    return {skip("no GPU or network card here that needs locked memory")};
  return {warn(
      fmt::format("only {} of memory may be locked: network cards that read memory directly need more", human(bytes)),
      facts.container.value_or(false) ? "start the container with --ulimit memlock=-1"
                                      : "ulimit -l unlimited; to keep it, a line in /etc/security/limits.conf")};
}

Diagnoses check_open_files(const Inventory&, const HostFacts& facts) {
  if (!facts.open_files.has_value()) return {skip_for(facts.open_files)};
  const int64_t files = facts.open_files.value();
  if (files == kUnlimited) return {pass("files may be open without limit")};
  if (files >= kEnoughFiles) return {pass(fmt::format("{} files may be open", files))};
  return {warn(fmt::format("only {} files may be open: data loaders with many workers need more", files),
               facts.container.value_or(false) ? "start the container with --ulimit nofile=65536" : "ulimit -n 65536")};
}

Diagnoses check_pid_namespace(const Inventory&, const HostFacts& facts) {
  if (!facts.host_pids.has_value()) return {skip_for(facts.host_pids)};
  if (facts.host_pids.value()) return {pass("process ids are the host's")};
  return {warn(
      "process ids here are not the host's: the processes that use a GPU are not known",
      facts.container.value_or(false) ? "start the container with --pid=host" : "run remuda outside this namespace")};
}

/// With one GPU there is no other one to keep a job from.
Diagnoses check_confinement(const Inventory& inventory, const HostFacts& facts) {
  if (!facts.confinement.has_value()) return {skip_for(facts.confinement)};
  const JobConfinement& held = facts.confinement.value();
  const bool container = facts.container.value_or(false);
  if (held.by_agent)
    return {pass("the agent confines each job by a cgroup, with device control where the kernel offers that")};
  if (held.devices)
    return {pass(fmt::format("jobs are confined by a cgroup (version {}) with device control", held.cgroup))};
  const std::string sentence =
      held.cgroup > 0
          ? fmt::format("jobs are confined by a cgroup (version {}) without device control: {}", held.cgroup,
                        held.obstacle)
          : fmt::format("jobs are confined by a process group only, without device control: {}", held.obstacle);
  if (gpus(inventory).size() < 2) return {pass(sentence)};
  if (held.cgroup > 0)
    return {warn(sentence, container ? "start the container with --cap-add BPF --cap-add NET_ADMIN"
                                     : "only root may set device filters: sudo remuda run ...")};
  return {warn(sentence, container ? "start the container with writable cgroups"
                                   : "systemd-run --user --scope -p Delegate=yes remuda run ... gives a cgroup; root "
                                     "has device control, too")};
}

Diagnoses check_pool(const Inventory&, const HostFacts& facts) {
  if (!facts.pool.has_value()) return {skip_for(facts.pool)};
  const PoolUse& pool = facts.pool.value();
  if (!pool.obstacle.empty()) return {warn(pool.obstacle, pool.remedy)};
  if (pool.is_shared) return {pass(fmt::format("the jobs of all users are in one pool, {}", pool.folder))};
  return {pass(fmt::format("each user has a pool, this one {}; no two of them grant one GPU at a time", pool.folder))};
}

}  // namespace remuda::doctor

#include "share/job_sharing.h"

#include <algorithm>
#include <tuple>
#include <unistd.h>

#include "share/mps.h"
#include "share/mps_folder.h"

namespace remuda::share {
namespace {

constexpr const char* kNotByAgent = "the agent of this machine keeps no MPS daemon for it";

std::string no_daemon_here(const Device& device) {
  if (std::string why = mps_obstacle(device); !why.empty()) return why;
  return find_mps_control() ? "" : no_mps_control();
}

bool has_daemon(const pool::Job* job, const std::string& device) {
  return job && std::ranges::find(job->daemons, device) != job->daemons.end();
}

}  // namespace

std::string expected_sharing(const Inventory& inventory, const std::vector<std::string>& devices,
                             const Expectation& expectation) {
  std::vector<Shared> shared;
  for (const std::string& id : devices) {
    const Device* device = inventory.find(id);
    if (!device) continue;
    std::string no_daemon = expectation.live ? no_daemon_here(*device) : mps_obstacle(*device);
    if (no_daemon.empty() && !expectation.may_have_daemons) no_daemon = kNotByAgent;
    shared.push_back(decide_sharing(*device, {.share = expectation.share,
                                              .devices = expectation.parted ? 1 : devices.size(),
                                              .no_daemon = std::move(no_daemon)}));
  }
  return sharing_text(inventory, shared, expectation.share);
}

Sharing sharing_of(const pool::PoolState& state, const pool::Lease& lease, const Inventory& inventory) {
  const Device* device = inventory.find(lease.device);
  if (device && device->kind == DeviceKind::partition) return Sharing::partition;
  if (lease.share >= 1) return Sharing::whole;
  const pool::Job* job = state.find(lease.job);
  return has_daemon(job, lease.device) ? Sharing::daemon : Sharing::time_slices;
}

std::set<std::string> devices_shared_by(const pool::PoolState& state, int uid, int64_t except) {
  std::set<std::string> devices;
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    if (job && job->uid == uid && lease.job != except && lease.share < 1) devices.insert(lease.device);
  }
  return devices;
}

std::string other_sharer(const pool::PoolState& state, const std::string& device, int64_t job) {
  const auto age = [](const pool::Lease& lease) { return std::tuple(lease.since_s, lease.job); };
  const auto own = std::ranges::find_if(
      state.leases, [&](const pool::Lease& lease) { return lease.job == job && lease.device == device; });
  const pool::Job* asking = state.find(job);
  if (own == state.leases.end() || !asking) return "";
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* other = state.find(lease.job);
    if (other && lease.device == device && other->uid != asking->uid && age(lease) < age(*own)) return other->user;
  }
  return "";
}

std::string JobSharing::begin(const Inventory& inventory, int64_t job, const std::vector<std::string>& devices) {
  job_ = job;
  shared_.clear();
  daemons_.clear();
  if (options_.share >= 1) return "";
  const auto state = pool_.read_around(job);
  const size_t in_process = options_.parted ? 1 : devices.size();
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id))
      shared_.push_back(share(state.value_or(pool::PoolState{}), *device, in_process));
  record();
  std::string text = sharing_text(inventory, shared_, options_.share);
  if (text == told_) return "";
  return told_ = text;
}

/// Records the job's daemons in the pool, for `remuda ps`.
void JobSharing::record() {
  std::vector<std::string> devices;
  for (const auto& daemon : daemons_) devices.push_back(daemon.first);
  (void)pool_.apply(pool::RecordDaemons{job_, devices});
}

/// Why there is none for this job; empty where there may be.
std::string JobSharing::no_daemon(const pool::PoolState& state, const Device& device) const {
  if (!options_.live) return "this machine is a recording";
  const std::string why = no_daemon_here(device);
  return why.empty() && pool_.is_served() && !has_daemon(state.find(job_), device.id) ? kNotByAgent : why;
}

/// Reaches the one that the agent has started, or starts this user's own.
Result<process::Environment> JobSharing::reach_daemon(const pool::PoolState& state, const Device& device) {
  const std::string program = find_mps_control().value_or("");
  if (pool_.is_served())
    return await_mps(program, state.find(job_)->daemon_folder + "/" + device_folder_name(device.id));
  const bool has_clients = devices_shared_by(state, static_cast<int>(::getuid()), job_).contains(device.id);
  return start_mps(options_.folder, device, program, has_clients);
}

Shared JobSharing::share(const pool::PoolState& state, const Device& device, size_t devices) {
  const double part = options_.share;
  Shared shared = decide_sharing(device, {.share = part,
                                          .devices = devices,
                                          .no_daemon = no_daemon(state, device),
                                          .other_holder = other_sharer(state, device.id, job_)});
  if (shared.how != Sharing::daemon) return shared;
  auto found = reach_daemon(state, device);
  if (!found) return {device.id, Sharing::time_slices, found.error().message};
  std::ranges::move(mps_limits(part, shared_memory_bytes(device, part)), std::back_inserter(*found));
  daemons_.emplace_back(device.id, std::move(*found));
  return shared;
}

process::Environment JobSharing::environment(const std::vector<std::string>& devices) const {
  if (devices.size() != 1) return {};
  const auto daemon = std::ranges::find(daemons_, devices[0], &std::pair<std::string, process::Environment>::first);
  return daemon == daemons_.end() ? process::Environment{} : daemon->second;
}

void JobSharing::end() {
  constexpr double kLockPatience_s = 20;
  if (shared_.empty() || !options_.live || pool_.is_served()) return;
  (void)stop_mps_except(
      options_.folder,
      [&]() -> Result<std::set<std::string>> {
        REMUDA_ASSIGN(const pool::PoolState state, pool_.read_around(job_));
        return devices_shared_by(state, static_cast<int>(::getuid()), job_);
      },
      kLockPatience_s);
}

void stop_unused_daemons(const std::string& folder, pool::Access& pool) {
  (void)stop_mps_except(
      folder,
      [&]() -> Result<std::set<std::string>> {
        REMUDA_ASSIGN(const pool::PoolState state, pool.read_around(0));
        return devices_shared_by(state, static_cast<int>(::getuid()));
      },
      0);
}

}  // namespace remuda::share

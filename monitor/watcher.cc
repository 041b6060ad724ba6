#include "monitor/watcher.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <sys/file.h>

#include "monitor/job_processes.h"

namespace remuda::monitor {
namespace {

/// Of ended leases, while the disk is full.
constexpr std::ptrdiff_t kMostUnwritten = 10'000;

Result<Fd> lock_folder(const std::string& folder) {
  const std::string path = folder + "/watch.lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return failed(fmt::format("cannot open {}: {}", path, errno_text(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return failed(fmt::format("another process keeps the history in {}", folder));
  return lock;
}

/// With what the runs of its jobs tell; of several, one that waits less is there for the device.
Slot slot_in(const Device& device, const pool::PoolState& pool, double wall_s) {
  Slot slot = slot_of(device.status);
  for (const pool::Lease& lease : pool.leases) {
    const pool::Job* const job = lease.device == device.id ? pool.find(lease.job) : nullptr;
    const auto waiting = job ? waiting_of(*job, device.id, wall_s) : std::nullopt;
    if (waiting) slot[Measure::waiting] = std::fmin(slot[Measure::waiting], static_cast<float>(*waiting));
  }
  return slot;
}

}  // namespace

Result<Watcher> Watcher::open(const std::string& folder) {
  REMUDA_ASSIGN(Fd lock, lock_folder(folder));
  REMUDA_ASSIGN(History history, History::open(folder));
  REMUDA_ASSIGN(UseStore uses, UseStore::open(folder));
  return Watcher(std::move(lock), std::move(history), std::move(uses));
}

/// What an earlier process has counted of leases that are still alive, or that ended before this could be read. Until
/// then nothing is written over it.
Result<void> Watcher::resume() {
  constexpr double kLongestAgo_s = 30 * 86400;
  if (is_resumed_) return {};
  REMUDA_ASSIGN(std::vector<LeaseUse> uses, uses_.read(taken_.wall_s - kLongestAgo_s));
  is_resumed_ = true;
  const auto is = [](const LeaseUse& use) {
    return [&use](const LeaseUse& one) {
      return one.job == use.job && one.device == use.device && one.since_s == use.since_s;
    };
  };
  for (LeaseUse& ended : unwritten_)
    if (const auto use = std::ranges::find_if(uses, is(ended)); use != uses.end()) add(*use, ended);
  std::erase_if(uses, [&](const LeaseUse& use) {
    return std::ranges::none_of(taken_.pool.leases,
                                [&](const pool::Lease& lease) { return is_use_of(use, lease, taken_.pool); });
  });
  meter_.resume(uses);
  return uses_.left_out().empty() ? Result<void>{} : failed(uses_.left_out());
}

Result<void> Watcher::take(Taken taken) {
  taken_ = std::move(taken);
  const double now_s = taken_.now_s;
  Result<void> outcome;
  if (taken_.agent_answers.value_or(true)) {  // leases do not end because nobody tells of them
    outcome = resume();
    const auto with_pods = pods_.beside(taken_.pool, taken_.wall_s);
    const pool::PoolState& pool = with_pods ? *with_pods : taken_.pool;
    meter_.add(now_s, taken_.wall_s, taken_.machine, pool, job_by_cgroup(pool), taken_.gone);
  }
  std::vector<DeviceSlot> slots;
  for (const Device& device : taken_.machine.devices)
    if (device.kind != DeviceKind::cpu) slots.push_back({device.id, slot_in(device, taken_.pool, taken_.wall_s)});
  if (auto added = history_.add(taken_.wall_s, slots); !added) outcome = std::move(added);
  if (now_s - written_s_ < kWriteEvery_s) return outcome;
  written_s_ = now_s;
  if (auto written = write(); !written) outcome = std::move(written);
  return outcome;
}

Result<void> Watcher::write_uses() {
  for (LeaseUse& use : meter_.take_ended()) unwritten_.push_back(std::move(use));
  if (std::ssize(unwritten_) > kMostUnwritten) unwritten_.erase(unwritten_.begin(), unwritten_.end() - kMostUnwritten);
  if (!is_resumed_) return {};
  std::vector<LeaseUse> uses = unwritten_;
  for (const auto& [_, use] : meter_.alive()) uses.push_back(use);
  REMUDA_TRY(uses_.write(uses));
  unwritten_.clear();
  return {};
}

Result<void> Watcher::write() {
  REMUDA_TRY(write_uses());
  return history_.write();
}

}  // namespace remuda::monitor

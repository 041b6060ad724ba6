// What is true of every state of a pool, whatever was done to it.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "pool/transitions.h"

namespace remuda::pool {
namespace {

std::string check_jobs(const PoolState& state) {
  int64_t last = 0;
  for (const Job& job : state.jobs) {
    if (job.id <= last) return fmt::format("job {} stands behind job {}", job.id, last);
    last = job.id;
    if (is_array(job) && job.state == JobState::running) return fmt::format("job {} is an array, and runs", job.id);
    const auto leases = std::ranges::count(state.leases, job.id, &Lease::job);
    const int64_t wanted = job.state == JobState::running ? job.request.count : 0;
    if (leases != wanted)
      return fmt::format("job {} is {} and holds {} devices, not {}", job.id, to_string(job.state), leases, wanted);
    if (job.state == JobState::running && static_cast<int>(job.cores.size()) != job.request.cores)
      return fmt::format("job {} has {} cores of the host, not {}", job.id, job.cores.size(), job.request.cores);
    if (job.preempted_by != 0 && !(job.preemptible && job.state == JobState::running))
      return fmt::format("job {} is {} and makes room for job {}", job.id, to_string(job.state), job.preempted_by);
  }
  return last < state.next_job ? "" : fmt::format("the next job would be {}, and {} is there", state.next_job, last);
}

std::string check_leases(const PoolState& state) {
  constexpr double kRounding = 1e-9;
  std::map<std::string, double> shares;
  std::set<std::pair<int64_t, std::string>> pairs;
  for (const Lease& lease : state.leases) {
    if (!state.find(lease.job))
      return fmt::format("{} is held for job {}, which is not there", lease.device, lease.job);
    if (!std::isfinite(lease.since_s) || !std::isfinite(lease.until_s))
      return fmt::format("{} is held by job {} since {} until {}", lease.device, lease.job, lease.since_s,
                         lease.until_s);
    if (!(lease.share > 0 && lease.share <= 1)) return fmt::format("{} of {} is held", lease.share, lease.device);
    if (!pairs.emplace(lease.job, lease.device).second)
      return fmt::format("job {} holds {} twice", lease.job, lease.device);
    double& share = shares[lease.device];
    share += lease.share;
    if (share > 1 + kRounding) return fmt::format("{} has two owners, job {} among them", lease.device, lease.job);
  }
  return "";
}

std::string check_cores(const PoolState& state) {
  std::map<int, int64_t> owners;
  for (const Job& job : state.jobs) {
    if (job.state != JobState::running) continue;
    for (const int core : job.cores)
      if (const auto [owner, is_new] = owners.try_emplace(core, job.id); !is_new)
        return fmt::format("core {} has two owners, jobs {} and {}", core, owner->second, job.id);
  }
  return "";
}

std::string check_usage(const PoolState& state) {
  std::set<std::string> users;
  for (const Usage& usage : state.usage) {
    if (!users.insert(usage.user).second) return fmt::format("the usage of '{}' stands twice", usage.user);
    if (!(std::isfinite(usage.device_seconds) && usage.device_seconds >= 0))
      return fmt::format("'{}' has used devices for {} seconds", usage.user, usage.device_seconds);
  }
  return "";
}

std::string check_spent(const PoolState& state) {
  const auto is_before = [](const Spent& a, const Spent& b) {
    return std::tie(a.user, a.day) < std::tie(b.user, b.day);
  };
  for (size_t i = 0; i < state.spent.size(); ++i) {
    const Spent& spent = state.spent.at(i);
    if (!(std::isfinite(spent.device_s) && spent.device_s >= 0) || (i > 0 && !is_before(state.spent.at(i - 1), spent)))
      return fmt::format("what '{}' spent on day {} is {} s, or stands twice", spent.user, spent.day, spent.device_s);
  }
  return "";
}

std::string check_drains(const PoolState& state) {
  for (size_t i = 0; i + 1 < state.drains.size(); ++i)
    if (state.drains.at(i).device >= state.drains.at(i + 1).device)
      return fmt::format("{} is drained twice", state.drains.at(i).device);
  return "";
}

}  // namespace

std::string check(const PoolState& state) {
  for (const auto& part : {check_jobs, check_leases, check_cores, check_usage, check_spent, check_drains})
    if (std::string broken = part(state); !broken.empty()) return broken;
  return "";
}

}  // namespace remuda::pool

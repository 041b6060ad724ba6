// A process that runs already becomes a part of a job (remuda adopt).
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "agent/service.h"
#include "confine/device_nodes.h"
#include "confine/open_nodes.h"
#include "pool/transitions.h"
#include "process/stat.h"
#include "process/status.h"
#include "process/tree.h"

namespace remuda::agent {
namespace {

constexpr size_t kMostBrought = 1000;  ///< the agent looks at each, and others wait meanwhile

}  // namespace

/// Neither it nor what descends from it has a device open, except those.
Result<void> Service::check_unused(const Caller& caller, const process::ProcessId& process,
                                   const std::vector<std::string>& but) const {
  if (!view_.is_live()) return {};
  const std::vector<confine::DeviceNode> nodes = confine::withheld_nodes(view_.inventory(), but).nodes;
  return confine::check_unopened(process::family_of(process, caller.uid), nodes);
}

/// Those of other jobs: what a job that waits is granted is not this one's, and its front ends with it.
std::set<int> Service::keepers_and_fronts(const std::vector<process::ProcessId>& family, int uid, int64_t but) const {
  std::set<int> found;
  for (const process::ProcessId& one : family) {
    const bool is_keeper = std::ranges::any_of(pool_.seen().jobs, [&](const pool::Job& other) {
      return other.id != but && other.uid == uid && other.keeper == one;
    });
    if (!is_keeper) continue;
    found.insert(one.pid);
    if (const auto stat = process::process_stat(one.pid)) found.insert(stat->parent);
  }
  return found;
}

/// What it opened while it was moved is seen afterwards: then its job ends, and it with that.
Result<void> Service::bring(const Caller& caller, int64_t id, const process::ProcessId& process) {
  const pool::Job* job = pool_.seen().find(id);
  if (!job) return usage_error(fmt::format("no job {} is there, or it has ended", id));
  REMUDA_TRY(pool::check_enter(*job, caller.uid));
  if (job->keeper != caller.process) return usage_error(fmt::format("job {} is kept by another process", id));
  const auto user = process::sole_user_of(process.pid);
  if (!is_alive(process)) return usage_error(fmt::format("there is no process {}", process.pid));
  if (user != caller.uid) return usage_error(fmt::format("process {} is not yours", process.pid));
  if (const int64_t other = holds_->job_of(process); other != 0)
    return usage_error(fmt::format("process {} is a part of job {} already", process.pid, other));
  REMUDA_TRY(check_unused(caller, process, {}));
  const std::vector<process::ProcessId> family = process::family_of(process, caller.uid);
  if (family.size() > kMostBrought)
    return usage_error(fmt::format("more than {} processes descend from process {}, and no more are taken",
                                   kMostBrought, process.pid));
  if (!holds_->enter(id, process)) return failed(pool::cannot_be_entered(id));
  const std::set<int> others = keepers_and_fronts(family, caller.uid, id);
  for (const process::ProcessId& one : family)
    if (one != process && holds_->job_of(one) == 0 && !others.contains(one.pid)) holds_->enter(id, one);
  return check_unused(caller, process, job->devices);
}

}  // namespace remuda::agent

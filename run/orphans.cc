#include "run/orphans.h"

#include <algorithm>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "confine/cgroup.h"

namespace remuda::run {
namespace {

/// The entries of the environment that identify the processes of a job.
struct JobMark {
  JobMark(const std::string& pool, int64_t job)
      : number(fmt::format("{}={}", env::job.name, job)),
        path(fmt::format("{}={}", env::job_pool.name, pool)),
        identity(fmt::format("{}={}", env::job_pool_id.name, confine::pool_identity(pool))) {}

  /// A process started by an older remuda, which did not set the identity, is recognised by the pool's path.
  bool is_on(const std::vector<std::string>& environment) const {
    const auto has = [&](const std::string& entry) {
      return std::ranges::find(environment, entry) != environment.end();
    };
    const std::string start = fmt::format("{}=", env::job_pool_id.name);
    const bool has_identity =
        std::ranges::any_of(environment, [&](const std::string& entry) { return entry.starts_with(start); });
    return has(number) && has(has_identity ? identity : path);
  }

  std::string number, path, identity;
};

bool belongs_to(int pid, int uid) {
  struct stat info{};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && static_cast<int>(info.st_uid) == uid;
}

/// A process whose environment is hidden may be one of the job's if it is its user's, and not older than the job.
bool may_be_of(const pool::Job& job, int pid, const JobMark& mark) {
  if (const auto carried = process::environ_of(pid)) return mark.is_on(*carried);
  if (job.uid == static_cast<int>(::getuid()) || !belongs_to(pid, job.uid)) return false;
  const auto process = process::process_id(pid);
  return process && (job.processes.empty() || process->start_ticks >= job.processes.front().start_ticks);
}

}  // namespace

std::vector<process::ProcessId> carriers(const std::string& pool, int64_t job) {
  const JobMark mark(pool, job);
  return process::processes_with([&](const std::vector<std::string>& carried) { return mark.is_on(carried); });
}

bool has_orphans(const std::string& pool, const pool::Job& job) {
  const JobMark mark(pool, job.id);
  return std::ranges::any_of(process::all_processes(),
                             [&](int pid) { return process::process_id(pid) && may_be_of(job, pid, mark); });
}

std::vector<process::ProcessId> kill_orphans(const std::string& pool, int64_t job, double patience_s) {
  const std::vector<std::string> cgroups = confine::find_cgroups(confine::cgroup_name(pool, job));
  const auto find = [&] {
    std::vector<process::ProcessId> found = carriers(pool, job);
    for (const std::string& cgroup : cgroups) {
      confine::kill_cgroup(cgroup);
      std::ranges::copy(confine::cgroup_members(cgroup), std::back_inserter(found));
    }
    return found;
  };
  return process::kill_all(find, patience_s);
}

bool remove_cgroups(const std::string& pool, int64_t job) {
  bool all_gone = true;
  for (const std::string& cgroup : confine::find_cgroups(confine::cgroup_name(pool, job)))
    all_gone = confine::remove_cgroup(cgroup) && all_gone;
  return all_gone;
}

}  // namespace remuda::run

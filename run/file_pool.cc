#include "run/file_pool.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <iterator>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "confine/cgroup.h"
#include "pool/transitions.h"
#include "process/tree.h"
#include "process/user_name.h"
#include "run/confining_job.h"
#include "run/orphans.h"

namespace remuda::run {
namespace {

constexpr double kOrphanPatience_s = 2;

/// The lock of the pool's folder, which processes get in the order in which they came: SQLite lets many writers race
/// for each turn, and the unlucky ones starve. After 10 seconds this process stops waiting and races as well: then
/// nothing is returned. A thread waits in place of the caller, as flock() has no time limit.
Fd wait_in_line(const std::string& folder) {
  constexpr auto kPatience = std::chrono::seconds(10);
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  std::promise<Fd> locked;
  std::future<Fd> lock = locked.get_future();
  std::thread([fd = std::move(fd), locked = std::move(locked)]() mutable {
    while (::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    locked.set_value(std::move(fd));  // where the caller has stopped waiting, this closes it
  }).detach();
  return lock.wait_for(kPatience) == std::future_status::ready ? lock.get() : Fd();
}

/// So that a stopped one sees that its job was cancelled.
void continue_cancelled(const pool::PoolState& state) {
  for (const pool::Job& job : state.jobs)
    if (job.cancelled && job.state == pool::JobState::running) process::send_signal(job.keeper, SIGCONT);
}

/// Those of other trees first: in the last one it is held together with the job's processes.
std::vector<std::string> cgroups_of(const pool::Job& job) {
  std::vector<std::string> cgroups = confine::find_cgroups(job.cgroup.substr(job.cgroup.rfind('/') + 1));
  std::erase(cgroups, job.cgroup);
  cgroups.push_back(job.cgroup);
  return cgroups;
}

bool is_cancel(const pool::Operation& operation) {
  return std::holds_alternative<pool::Cancel>(operation) || std::holds_alternative<pool::CancelSelected>(operation);
}

}  // namespace

Result<std::unique_ptr<FilePool>> FilePool::open(const std::string& folder, pool::MachineView& machine) {
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(folder));
  return std::unique_ptr<FilePool>(new FilePool(folder, std::move(pool), machine));
}

/// Starts the jobs whose turn it is, and returns their keepers. A process that sees only a part of the machine starts
/// none: one that sees the whole machine does.
std::vector<process::ProcessId> FilePool::start_jobs(pool::PoolState& state) const {
  std::vector<process::ProcessId> keepers;
  const Result<pool::Policy>& policy = machine_.policy();
  if (confining_job(state)) return keepers;
  if (!policy) {
    hold_back(state, policy.error().message, wall_s());
    return keepers;
  }
  for (const int64_t id : schedule(state, machine_.inventory(), machine_.held_without_lease(state), *policy, wall_s()))
    if (const pool::Job* job = state.find(id)) keepers.push_back(job->keeper);
  return keepers;
}

Result<void> FilePool::change_and_start(const Transition& transition, const std::vector<int64_t>& with,
                                        const std::function<Result<void>(const pool::PoolState&)>& accept) {
  const bool sees_machine = machine_.read_if_old().has_value();
  std::vector<process::ProcessId> started;
  const auto change = [&](pool::PoolState& state) -> Result<void> {
    REMUDA_TRY(transition(state));
    if (sees_machine) started = start_jobs(state);
    return accept(state);
  };
  {
    const Fd place = take_place();
    REMUDA_TRY(pool_.change(change, with));
  }
  for (const process::ProcessId& keeper : started) process::send_signal(keeper, SIGCHLD);
  return {};
}

/// What frees devices goes ahead of all processes that wait in line for a change.
Result<pool::Applied> FilePool::apply(const pool::Operation& operation) {
  pool::Applied applied;
  pool::PoolState cancelled;
  const std::string user = is_cancel(operation) ? process::user_name(static_cast<int>(::getuid())) : "";
  const auto transition = [&](pool::PoolState& state) -> Result<void> {
    REMUDA_ASSIGN(applied, pool::apply(state, operation,
                                       {.inventory = machine_.inventory(),
                                        .policy = machine_.policy(),
                                        .uid = static_cast<int>(::getuid()),
                                        .now_s = wall_s(),
                                        .user = user,
                                        .last_policy = &machine_.last_policy()}));
    if (is_cancel(operation)) cancelled = state;
    return {};
  };
  const auto accept = [&](const pool::PoolState& state) { return pool::accept(state, operation, applied); };
  const std::vector<int64_t> with = ended_jobs_for(operation);
  if (starts_jobs(operation))
    REMUDA_TRY(change_and_start(transition, with, accept));
  else
    REMUDA_TRY(pool_.change(transition, with));
  continue_cancelled(cancelled);
  return applied;
}

Result<std::vector<int64_t>> FilePool::reap_once() {
  std::vector<int64_t> orphaned;
  const auto reap_all = [&](pool::PoolState& state) -> Result<void> {
    const auto has_left_some = [&](const pool::Job& job) {
      return has_orphans(folder_, job) || !remove_cgroups(folder_, job.id);
    };
    const auto is_living = [&](const process::ProcessId& process) { return pool::lives(folder_, process); };
    orphaned = reap(state, is_living, has_left_some, machine_.last_policy(), wall_s());
    return {};
  };
  REMUDA_TRY(change_and_start(reap_all, {}, [](const pool::PoolState&) -> Result<void> { return {}; }));
  pool::sweep_lifelines(folder_);
  return orphaned;
}

Result<std::vector<std::string>> FilePool::cgroups_to_enter(int64_t id) {
  REMUDA_ASSIGN(const pool::PoolState state, pool_.read());
  const pool::Job* job = state.find(id);
  if (!job) return usage_error(fmt::format("no job {} is there, or it has ended", id));
  REMUDA_TRY(pool::check_enter(*job, static_cast<int>(::getuid())));
  if (job->cgroup.empty()) return failed(pool::cannot_be_entered(id));
  return cgroups_of(*job);
}

Result<void> FilePool::enter(int64_t id) {
  REMUDA_ASSIGN(const std::vector<std::string> cgroups, cgroups_to_enter(id));
  if (confine::move_into_all(cgroups, process::own_process_id())) return {};
  return failed(fmt::format("this process cannot be moved to the cgroup of job {}, {}: {}", id, cgroups.back(),
                            errno_text(errno)));
}

/// Without this process and the one that has started it, which may be among its descendants; nor those that keep other
/// jobs or are of them.
Result<void> FilePool::bring(int64_t id, const process::ProcessId& process) {
  REMUDA_ASSIGN(const std::vector<std::string> cgroups, cgroups_to_enter(id));
  REMUDA_ASSIGN(const pool::PoolState state, pool_.read());
  std::vector<process::ProcessId> of_others;
  for (const pool::Job& job : state.jobs) {
    if (job.id == id || job.state == pool::JobState::ended) continue;
    of_others.push_back(job.keeper);
    if (!job.cgroup.empty()) std::ranges::copy(confine::cgroup_members(job.cgroup), std::back_inserter(of_others));
  }
  for (const process::ProcessId& one : process::family_of(process, static_cast<int>(::getuid()))) {
    const bool is_own = one.pid == ::getpid() || one.pid == ::getppid();
    if (is_own || std::ranges::find(of_others, one) != of_others.end() || confine::move_into_all(cgroups, one))
      continue;
    if (one == process)
      return failed(fmt::format("process {} cannot be moved to the cgroup of job {}, {}: {}", process.pid, id,
                                cgroups.back(), errno_text(errno)));
  }
  return {};
}

Result<void> FilePool::tidy() {
  REMUDA_ASSIGN(const pool::PoolState state, pool_.read());
  const bool all_kept = std::ranges::all_of(state.jobs, [&](const pool::Job& job) {
    return job.state == pool::JobState::ended || pool::lives(folder_, job.keeper);
  });
  if (all_kept) return {};
  REMUDA_ASSIGN(const std::vector<int64_t> orphaned, reap_once());
  for (const int64_t job : orphaned) kill_orphans(folder_, job, kOrphanPatience_s);
  if (!orphaned.empty()) REMUDA_TRY(reap_once());
  return {};
}

/// Any user who may read the folder can hold its lock, and shall not delay each change anew.
Fd FilePool::take_place() {
  constexpr double kRace_s = 60;
  if (monotonic_s() < race_until_s_) return {};
  Fd place = wait_in_line(folder_);
  if (!place) race_until_s_ = monotonic_s() + kRace_s;
  return place;
}

Result<int> FilePool::become_keeper() {
  if (!lifeline_) {
    REMUDA_ASSIGN(pool::Lifeline held, pool::Lifeline::hold(folder_));
    lifeline_.emplace(std::move(held));
  }
  return lifeline_->fd();
}

Result<void> FilePool::wait(int64_t, const std::vector<process::ProcessId>& processes, double seconds,
                            const std::vector<int>& readable) {
  return pool_.wait(processes, seconds, readable);
}

}  // namespace remuda::run

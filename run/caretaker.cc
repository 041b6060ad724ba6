#include "run/caretaker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <future>
#include <sys/file.h>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "confine/cgroup_place.h"
#include "pool/claim.h"
#include "pool/lifeline.h"
#include "run/orphans.h"
#include "run/policy_file.h"
#include "share/job_sharing.h"

namespace remuda::run {
namespace {

constexpr double kOrphanPatience_s = 2;
constexpr double kOld_s = 2;  // age of a reading of the machine from which it is read again before devices are granted

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

}  // namespace

Caretaker::Caretaker(pool::Pool pool, std::string folder, ReadMachine read, bool live, Inventory inventory)
    : pool_(std::move(pool)),
      folder_(std::move(folder)),
      read_(std::move(read)),
      live_(live),
      inventory_(std::move(inventory)),
      policy_(policy_of(folder_)),
      read_at_s_(monotonic_s()) {
  if (live_) claimed_ = pool::claimed_by_others(folder_, inventory_);
}

Result<Caretaker> Caretaker::open(const std::string& folder, ReadMachine read, bool live) {
  REMUDA_ASSIGN(Inventory inventory, read());
  REMUDA_ASSIGN(pool::Pool pool, pool::Pool::open(folder));
  return Caretaker(std::move(pool), folder, std::move(read), live, std::move(inventory));
}

Result<void> Caretaker::read_machine() {
  REMUDA_ASSIGN(inventory_, read_());
  if (live_) claimed_ = pool::claimed_by_others(folder_, inventory_);
  policy_ = policy_of(folder_);
  read_at_s_ = monotonic_s();
  return {};
}

Result<void> Caretaker::read_machine_if_old() {
  return monotonic_s() - read_at_s_ < kOld_s ? Result<void>{} : read_machine();
}

std::vector<place::Held> Caretaker::held_without_lease(const pool::PoolState& state) const {
  std::vector<place::Held> held = place::held_by_processes(inventory_);
  std::erase_if(held, [&](const place::Held& one) {
    return std::ranges::find(state.leases, one.device, &pool::Lease::device) != state.leases.end() ||
           std::ranges::find(claimed_, one.device, &place::Held::device) != claimed_.end();
  });
  std::ranges::copy(claimed_, std::back_inserter(held));
  return held;
}

std::optional<int64_t> Caretaker::confining_job(const pool::PoolState& state) {
  const auto filters = [](const pool::Job& job) {
    return job.state == pool::JobState::running && job.files_denied > 0;
  };
  if (std::ranges::none_of(state.jobs, filters)) return std::nullopt;
  const std::vector<confine::CgroupPlace> places = confine::own_cgroup_places();
  for (const pool::Job& job : state.jobs) {
    if (!filters(job)) continue;
    const std::string name = job.cgroup.substr(job.cgroup.rfind('/') + 1) + "/";
    const auto is_within = [&](const confine::CgroupPlace& place) {
      return (place.own + "/").find("/" + name) != std::string::npos;
    };
    if (std::ranges::any_of(places, is_within)) return job.id;
  }
  return std::nullopt;
}

/// Starts the jobs whose turn it is, and returns their keepers.
std::vector<process::ProcessId> Caretaker::start_jobs(pool::PoolState& state) const {
  std::vector<process::ProcessId> keepers;
  if (confining_job(state) || !policy_) return keepers;
  for (const int64_t id : schedule(state, inventory_, held_without_lease(state), *policy_, wall_s()))
    if (const pool::Job* job = state.find(id)) keepers.push_back(job->keeper);
  return keepers;
}

Result<std::vector<int64_t>> Caretaker::reap_once() {
  std::vector<int64_t> orphaned;
  REMUDA_TRY(change([&](pool::PoolState& state) -> Result<void> {
    const auto has_left_some = [&](const pool::Job& job) {
      return has_orphans(folder_, job) || !remove_cgroups(folder_, job.id);
    };
    const auto is_living = [&](const process::ProcessId& process) { return pool::lives(folder_, process); };
    orphaned = reap(state, is_living, has_left_some, {}, wall_s());
    return {};
  }));
  pool::sweep_lifelines(folder_);
  return orphaned;
}

Result<pool::PoolState> Caretaker::tidy() {
  auto state = tidy_jobs();
  share::stop_unused_daemons(folder_, pool_);
  return state;
}

Result<pool::PoolState> Caretaker::tidy_jobs() {
  REMUDA_ASSIGN(pool::PoolState state, pool_.read());
  const bool all_kept = std::ranges::all_of(state.jobs, [&](const pool::Job& job) {
    return job.state == pool::JobState::ended || pool::lives(folder_, job.keeper);
  });
  if (all_kept) return state;
  REMUDA_ASSIGN(const std::vector<int64_t> orphaned, reap_once());
  for (const int64_t job : orphaned) kill_orphans(folder_, job, kOrphanPatience_s);
  if (!orphaned.empty()) REMUDA_TRY(reap_once());
  return pool_.read();
}

/// Any user who may read the folder can hold its lock, and shall not delay each change anew.
Fd Caretaker::take_place() {
  constexpr double kRace_s = 60;
  if (monotonic_s() < race_until_s_) return {};
  Fd place = wait_in_line(folder_);
  if (!place) race_until_s_ = monotonic_s() + kRace_s;
  return place;
}

Result<void> Caretaker::change(const std::function<Result<void>(pool::PoolState&)>& transition,
                               const std::vector<int64_t>& with,
                               const std::function<Result<void>(const pool::PoolState&)>& accept) {
  const bool sees_machine = read_machine_if_old().has_value();
  std::vector<process::ProcessId> started;
  const auto change_and_start = [&](pool::PoolState& state) -> Result<void> {
    REMUDA_TRY(transition(state));
    if (sees_machine) started = start_jobs(state);
    return accept(state);
  };
  {
    const Fd place = take_place();
    REMUDA_TRY(pool_.change(change_and_start, with));
  }
  for (const process::ProcessId& keeper : started) send_signal(keeper, SIGCHLD);
  return {};
}

}  // namespace remuda::run

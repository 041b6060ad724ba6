#include "cli/watch/watch_loop.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/state_folder.h"
#include "cli/jobs/watched_pool.h"
#include "monitor/job_processes.h"
#include "wire/place.h"

namespace remuda::cli {

Result<std::string> watch_folder(const std::string& machine_file) {
  const auto state = state_folder();
  if (!state) return usage_error("there is no folder for the history: set HOME, or name one by --folder");
  if (machine_file.empty()) return *state + "/watch";
  return *state + "/watch-of/" + std::filesystem::path(machine_file).stem().string();
}

Result<void> check_readable(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return usage_error(fmt::format("cannot read {}: {}", path, errno_text(errno)));
}

namespace {

/// What is there is believed, and written over.
Result<void> check_owner(const std::string& folder) {
  for (const std::string& path : {folder, folder + "/history.db"}) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0 && info.st_uid != ::geteuid() && info.st_uid != 0)
      return usage_error(fmt::format("{} belongs to another user: name a folder of your own by --folder", path));
  }
  return {};
}

/// One for each disk; one that cannot be seen is left out.
std::vector<monitor::DiskRoom> disks_with(const std::vector<std::string>& folders) {
  std::vector<monitor::DiskRoom> disks;
  std::set<dev_t> known;
  for (const std::string& folder : folders) {
    struct stat info{};
    struct statvfs room{};
    if (::stat(folder.c_str(), &info) != 0 || ::statvfs(folder.c_str(), &room) != 0) continue;
    if (!known.insert(info.st_dev).second) continue;
    const auto bytes = [&room](fsblkcnt_t blocks) { return static_cast<int64_t>(blocks * room.f_frsize); };
    disks.push_back({folder, bytes(room.f_blocks - room.f_bfree + room.f_bavail), bytes(room.f_bavail)});
  }
  return disks;
}

/// No room for a file of a history that is still empty.
bool is_full(const std::string& folder) {
  constexpr int64_t kRoom = 256 << 10;
  const auto disks = disks_with({folder});
  return !disks.empty() && disks[0].free_bytes < kRoom;
}

}  // namespace

Result<Inventory> WatchLoop::Reader::read() {
  if (!reader || asked_agent != flags.asks_agent) reader = std::make_unique<MachineReader>(flags);
  asked_agent = flags.asks_agent;
  return reader->read();
}

WatchLoop::WatchLoop(MachineFlags flags, std::string folder)
    : flags_(std::move(flags)),
      folder_(std::move(folder)),
      has_agent_(wire::agent_socket(flags_.file.empty()).has_value()),
      reader_(std::make_shared<Reader>(Reader{.flags = flags_})) {}

Result<WatchLoop> WatchLoop::open(const MachineFlags& flags, const std::string& folder, bool must_keep) {
  REMUDA_TRY(make_folder(std::filesystem::absolute(folder).lexically_normal().string()));
  REMUDA_TRY(check_owner(folder));
  auto watcher = monitor::Watcher::open(folder);
  const bool may_come = !watcher && is_full(folder);
  if (!watcher && must_keep && !may_come) return tl::unexpected(std::move(watcher.error()));
  WatchLoop loop(flags, folder);
  loop.pool_read_ = loop.reach_pool();
  if (!loop.caretaker_ && (!loop.has_agent_ || loop.pool_read_.error().kind != ErrorKind::unavailable))
    return tl::unexpected(std::move(loop.pool_read_.error()));
  if (watcher) {
    loop.watcher_.emplace(std::move(*watcher));
  } else if (auto others = monitor::History::open(folder)) {
    loop.others_.emplace(std::move(*others));
  } else if (may_come) {
    loop.kept_ = failed("there is no history yet: " + watcher.error().message);
  } else {
    return tl::unexpected(std::move(others.error()));
  }
  return loop;
}

/// Jobs that wait may be thousands, and their number is all that matters here; processes may be thousands, too. So
/// these are looked at less often.
Result<void> WatchLoop::look_seldom(monitor::Watcher::Taken& taken) {
  constexpr int kJobsEvery = 10, kProcessesEvery = 30;
  if (steps_ >= jobs_due_) {
    REMUDA_ASSIGN(const pool::PoolState all, caretaker_->pool().read());
    jobs_due_ = steps_ + kJobsEvery;
    waiting_ = static_cast<size_t>(std::ranges::count(all.jobs, pool::JobState::waiting, &pool::Job::state));
  }
  if (steps_ >= processes_due_) {
    processes_due_ = steps_ + kProcessesEvery;
    idle_.look(taken.now_s, taken.wall_s, taken.machine, taken.pool);
    strange_ = monitor::used_by_strangers(taken.machine, taken.pool, monitor::job_by_cgroup(taken.pool));
  }
  taken.waiting = waiting_;
  taken.used_by_strangers = strange_;
  return {};
}

/// Once the process that kept the history has ended, or the disk has room for one, this one does.
void WatchLoop::take_over() {
  constexpr int kEvery = 10;
  if (watcher_ || steps_ % kEvery != 0) return;
  auto watcher = monitor::Watcher::open(folder_);
  if (!watcher) return;  // it is still there, or full
  watcher_.emplace(std::move(*watcher));
  others_.reset();
  kept_ = {};
}

/// Those that had leases at the last step, and the newest that have ended: a job may begin and end between two steps.
/// While no lease and no job comes or goes, nothing is asked for.
Result<void> WatchLoop::find_gone(monitor::Watcher::Taken& taken) {
  constexpr int kNewest = 64;
  if (taken.pool.leases == leases_ && taken.pool.next_job == next_job_) return {};
  REMUDA_ASSIGN(taken.gone, caretaker_->pool().ended(kNewest));
  for (const pool::Lease& lease : leases_) {
    if (std::ranges::find(taken.pool.leases, lease) != taken.pool.leases.end()) continue;
    if (std::ranges::find(taken.gone, lease.job, &pool::Job::id) != taken.gone.end()) continue;
    REMUDA_ASSIGN(auto job, caretaker_->pool().find(lease.job));
    if (job) taken.gone.push_back(std::move(*job));
  }
  leases_ = taken.pool.leases;
  next_job_ = taken.pool.next_job;
  return {};
}

/// Asks an agent that did not answer before, or opens the pool for the first time.
Result<void> WatchLoop::reach_pool() {
  if (caretaker_) {
    REMUDA_TRY(caretaker_->pool().find(0));
    return {};
  }
  reader_->flags.asks_agent = flags_.asks_agent;
  REMUDA_ASSIGN(caretaker_, open_watched_pool(flags_, [reader = reader_] { return reader->read(); }));
  return {};
}

/// An agent that does not report the pool is not asked for its devices, either, which would take as long.
Result<Inventory> WatchLoop::read_machine() {
  reader_->flags.asks_agent = flags_.asks_agent && (!has_agent_ || pool_read_);
  if (!caretaker_) return reader_->read();
  REMUDA_TRY(caretaker_->read_machine());
  return caretaker_->inventory();
}

Result<void> WatchLoop::look_at_pool(monitor::Watcher::Taken& taken) {
  REMUDA_ASSIGN(taken.pool, caretaker_->pool().read_around(0));
  taken.now_s = monotonic_s(), taken.wall_s = remuda::wall_s();  // the moment of the pool: its leases began before it
  REMUDA_TRY(look_seldom(taken));
  if (watcher_) REMUDA_TRY(find_gone(taken));
  for (const place::Held& held : caretaker_->held_without_lease(taken.pool))
    taken.used_without_lease.push_back(held.device);
  return {};
}

Result<void> WatchLoop::step() {
  constexpr int kDisksEvery = 10;
  const int step = steps_++;
  take_over();
  if (!pool_read_) pool_read_ = reach_pool();
  if (step % kDisksEvery == 0) disks_ = disks_with({folder_, caretaker_ ? caretaker_->folder() : folder_});
  REMUDA_ASSIGN(Inventory machine, read_machine());
  monitor::Watcher::Taken taken{monotonic_s(), wall_s(), std::move(machine), {}, 0, {}, {}, {}};
  if (pool_read_) pool_read_ = look_at_pool(taken);
  if (!pool_read_ && pool_read_.error().kind != ErrorKind::unavailable) return std::exchange(pool_read_, {});
  if (has_agent_) taken.agent_answers = pool_read_.has_value();
  if (!pool_read_)
    taken = {taken.now_s, taken.wall_s, std::move(taken.machine), {}, 0, {}, {}, {}, false, pool_read_.error().message};
  wall_s_ = taken.wall_s;
  const double now_s = taken.now_s;
  if (watcher_)
    kept_ = watcher_->take(std::move(taken));
  else
    taken_ = std::move(taken);
  alerts_.take(moment(), now_s, wall_s_);
  if (auto kept = keep_alerts(); !kept && kept_) kept_ = std::move(kept);
  return {};
}

/// What others have said of them is read; the process that keeps the history writes them for others, and forgets who
/// looked after what is over.
Result<void> WatchLoop::keep_alerts() {
  constexpr double kWriteEvery_s = 10;
  const std::vector<monitor::Alert> before = std::exchange(active_, alerts_.active());
  const auto is_active = [&](const std::string& id) {
    return std::ranges::find(active_, id, &monitor::Alert::id) != active_.end();
  };
  if (auto attention = monitor::read_attention(folder_))
    attention_ = std::move(*attention);
  else
    return tl::unexpected(std::move(attention.error()));
  if (!watcher_) return {};
  std::vector<std::string> over;
  for (const monitor::Alert& alert : before)
    if (!is_active(alert.id)) over.push_back(alert.id);
  if (over.empty() && before.size() == active_.size() && wall_s_ - written_s_ < kWriteEvery_s && wall_s_ >= written_s_)
    return {};
  written_s_ = wall_s_;
  REMUDA_TRY(monitor::write_alerts(folder_, active_, wall_s_));
  if (over.empty()) return {};
  return monitor::change_attention(folder_, [&](monitor::Attention& all) {
    std::erase_if(all.acknowledged,
                  [&](const monitor::Acknowledged& one) { return std::ranges::find(over, one.alert) != over.end(); });
    std::erase_if(all.silences, [&](const monitor::Silence& one) { return one.until_s < wall_s_; });
  });
}

std::vector<monitor::Alert> WatchLoop::alerts() const { return monitor::marked(active_, attention_, wall_s_); }

Result<void> WatchLoop::end() { return watcher_ ? watcher_->write() : Result<void>{}; }

monitor::Moment WatchLoop::moment() const {
  static const monitor::LeaseUses kNoUses;
  monitor::Moment moment = watcher_ ? watcher_->moment() : monitor::Watcher::moment_of(taken_, kNoUses);
  moment.idle = &idle_;
  if (caretaker_ && caretaker_->policy()) moment.policy = &*caretaker_->policy();
  moment.disks = disks_;
  moment.wall_s = wall_s_;
  return moment;
}

}  // namespace remuda::cli

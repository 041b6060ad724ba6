#include "cli/watch/watch_loop.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/state_folder.h"
#include "cli/jobs/pool_machine.h"
#include "monitor/job_processes.h"

namespace remuda::cli {

Result<std::string> watch_folder(const std::string& machine_file) {
  const auto state = state_folder();
  if (!state) return usage_error("there is no folder for the history: set HOME, or name one by --folder");
  if (machine_file.empty()) return *state + "/watch";
  return *state + "/watch-of/" + std::filesystem::path(machine_file).stem().string();
}

Result<WatchLoop> WatchLoop::open(const MachineFlags& flags, const std::string& folder, bool must_keep) {
  REMUDA_TRY(make_folder(std::filesystem::absolute(folder).lexically_normal().string()));
  auto watcher = monitor::Watcher::open(folder);
  if (!watcher && must_keep) return tl::unexpected(std::move(watcher.error()));
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags));
  WatchLoop loop(std::move(caretaker));
  if (watcher) {
    loop.watcher_.emplace(std::move(*watcher));
  } else {
    REMUDA_ASSIGN(loop.others_, monitor::History::open(folder));
  }
  return loop;
}

/// Jobs that wait may be thousands, and their number is all that matters here; processes may be thousands, too. So
/// both are looked at less often.
Result<void> WatchLoop::look_seldom(monitor::Watcher::Taken& taken) {
  constexpr int kEvery = 10;
  if (steps_++ % kEvery == 0) {
    REMUDA_ASSIGN(const pool::PoolState all, caretaker_.pool().read());
    waiting_ = static_cast<size_t>(std::ranges::count(all.jobs, pool::JobState::waiting, &pool::Job::state));
    idle_.look(taken.now_s, taken.machine, taken.pool);
    strange_ = monitor::used_by_strangers(taken.machine, taken.pool, monitor::job_by_cgroup(taken.pool));
  }
  taken.waiting = waiting_;
  taken.used_by_strangers = strange_;
  return {};
}

Result<void> WatchLoop::step() {
  REMUDA_TRY(caretaker_.read_machine());
  REMUDA_ASSIGN(pool::PoolState pool, caretaker_.pool().read_around(0));
  monitor::Watcher::Taken taken{monotonic_s(), wall_s(), caretaker_.inventory(), std::move(pool), 0, {}, {}};
  REMUDA_TRY(look_seldom(taken));
  for (const place::Held& held : caretaker_.held_without_lease(taken.pool))
    taken.used_without_lease.push_back(held.device);
  const double wall_s = taken.wall_s;
  if (watcher_)
    kept_ = watcher_->take(std::move(taken));
  else
    taken_ = std::move(taken);
  alerts_.take(moment(), wall_s);
  return {};
}

Result<void> WatchLoop::end() { return watcher_ ? watcher_->write() : Result<void>{}; }

monitor::Moment WatchLoop::moment() const {
  static const monitor::LeaseUses kNoUses;
  monitor::Moment moment =
      watcher_
          ? watcher_->moment()
          : monitor::Moment{taken_.machine,          taken_.pool, kNoUses, taken_.waiting, taken_.used_without_lease,
                            taken_.used_by_strangers};
  moment.idle = &idle_;
  return moment;
}

}  // namespace remuda::cli

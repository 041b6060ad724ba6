// IdleJobs: of each running job that holds devices, whether it did something with them over the last so many seconds,
// and why not.
//
// A job idles when all its devices do: of one that uses one of two, an alert speaks (alerts.h). Where jobs share a
// device, each one's processes count; while one works there that is of none of them, it is not known of which it is: a
// daemon may do their work, or a container that is not in the job's cgroup.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "device/inventory.h"
#include "monitor/idle_window.h"
#include "monitor/job_activity.h"
#include "pool/state.h"

namespace remuda::monitor {

/// The numbers of the processes of a running job, without its keeper; empty where they cannot be seen.
using MembersOf = std::function<std::vector<int>(const pool::Job&)>;
/// By its cgroup; without one, what descends from its keeper.
std::vector<int> members_of(const pool::Job& job);

/// One thread.
class IdleJobs {
 public:
  explicit IdleJobs(double window_s, MembersOf members = members_of)
      : window_s_(window_s), members_(std::move(members)) {}

  /// Takes a reading of the machine, of `now_s`, a steady time; `wall_s`: the same moment since 1970.
  void look(double now_s, double wall_s, const Inventory& machine, const pool::PoolState& pool);
  /// Null: it does not run, or holds no GPU.
  const IdleWindow* find(int64_t job) const;
  double window_s() const { return window_s_; }

 private:
  /// Of all jobs together so many are looked at, for each the same number: an agent does nothing else meanwhile. What
  /// the rest of a job's do is not known (Seen::misses_some).
  static constexpr size_t kMostProcesses = 400;
  struct Watched {
    IdleWindow window;
    JobActivity activity;
    double began_s = 0;  ///< of its lease (pool/clocks.h): a job that was queued again begins anew
  };
  Seen see(const pool::Job& job, const std::vector<const pool::Lease*>& leases, const Inventory& machine,
           const pool::PoolState& pool, Watched& watched, size_t most_processes, double now_s) const;
  double share_busy(const pool::Job& job, const std::set<int>& own, const Device& device,
                    const pool::PoolState& pool) const;

  double window_s_;
  MembersOf members_;
  std::map<int64_t, Watched> watched_;  ///< by job
};

}  // namespace remuda::monitor

// LeaseUse: what became of the time for which a job held a device: how much of it the device was busy, how much of its
// power and memory the work took. Meter adds it up from one reading of the machine to the next. Pure.
//
// Held, busy and effective are three numbers: a device may be held and idle, and busy says only that some kernel ran.
// Waiting is a fourth: for others of a run, as the run reports it (pool/run_notice.h), whether a kernel spins meanwhile
// or not. Effective is what the work made of the device, by the best that the device counts: the larger of the shares
// of time of its tensor cores and of its memory bandwidth; where it counts neither, power as a part of its limit, but
// no more than busy, since an idle device draws power, too: the work was that at most; else unknown. Time of which
// nothing is known is counted apart and is in none of these.
//
// Where jobs share a device, its own readings say nothing of one of them: then a job has what the driver reports of its
// processes, and energy in proportion to their busy times. Where the driver does not report it, or where it is not
// known whose a busy process is, that is unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/inventory.h"
#include "pool/state.h"

namespace remuda::monitor {

struct LeaseUse {
  int64_t job = 0;
  std::string device, user;
  std::string pod;                 ///< of a pod (pod_claims.h): "namespace/name"; it has no user
  std::string model;               ///< of the device
  double share = 1;                ///< of the device, that the job holds
  double since_s = 0, last_s = 0;  ///< seconds since 1970; `last_s`: of the last reading in it
  double began_s = 0;              ///< the lease, on the clock that nobody sets (pool/clocks.h)
  double held_s = 0;
  double busy_s = 0, busy_known_s = 0;
  double effective_s = 0, effective_known_s = 0;
  double waiting_s = 0, waiting_known_s = 0;  ///< for others of its run, as that reports
  double energy_joules = 0, energy_known_s = 0;
  double throttled_s = 0;
  int64_t memory_peak_bytes = 0;  ///< of the device; 0: not known

  static constexpr const char* kName = "lease_use";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("job", self.job, "which job held it", true);
    visit("device", self.device, "id of the device", true);
    visit("user", self.user, "whose job it was");
    visit("pod", self.pod, "the pod that had it of a kubelet, in place of a user's job");
    visit("model", self.model, "of the device");
    visit("share", self.share, "part of the device, 0 to 1");
    visit("since_s", self.since_s, "since when, in seconds since 1970");
    visit("last_s", self.last_s, "until when it was watched");
    visit("began_s", self.began_s, "when the lease began, on the clock that runs since the machine has started");
    visit("held_s", self.held_s, "how long it was held, as far as it was watched");
    visit("busy_s", self.busy_s, "how much of the known time a kernel ran");
    visit("busy_known_s", self.busy_known_s, "for how much of the held time that is known");
    visit("effective_s", self.effective_s, "known time, weighted by how much of the device the work used");
    visit("effective_known_s", self.effective_known_s, "for how much of the held time that is known");
    visit("waiting_s", self.waiting_s, "how much of the known time it waited for others of its run");
    visit("waiting_known_s", self.waiting_known_s, "for how much of the held time that is known: the run reports it");
    visit("energy_joules", self.energy_joules, "energy of the known time");
    visit("energy_known_s", self.energy_known_s, "for how much of the held time that is known");
    visit("throttled_s", self.throttled_s, "how long heat, power or hardware held its clocks down");
    visit("memory_peak_bytes", self.memory_peak_bytes, "the most memory of the device that was in use");
  }
  bool operator==(const LeaseUse&) const = default;
};

/// Whether it is of that lease, also where the wall clock was set meanwhile.
bool is_use_of(const LeaseUse& use, const pool::Lease& lease, const pool::PoolState& pool);

/// Adds what a part of the time was to a sum of other parts; of the names that `sum` has, none is changed.
void add(const LeaseUse& part, LeaseUse& sum);

/// Which job a process belongs to; 0: to none that is known.
using JobOf = std::function<int64_t(int pid)>;

using LeaseUses = std::map<std::pair<int64_t, std::string>, LeaseUse>;  ///< by job and device

/// One thread.
class Meter {
 public:
  /// A gap between readings that is longer than this is time of which nothing is known.
  static constexpr double kLongestGap_s = 5;

  /// Takes what was read at `now_s`, a steady time, with the pool of that moment; `wall_s`: the same moment since 1970.
  /// `gone`: jobs that have ended, or have lost their leases, since the time before; others do no harm. Their leases
  /// count up to their end, and one that began and ended between two readings counts, too.
  void add(double now_s, double wall_s, const Inventory& machine, const pool::PoolState& pool, const JobOf& job_of,
           std::span<const pool::Job> gone = {});

  /// Of leases that are alive, and of those that have ended since the last take_ended().
  const LeaseUses& alive() const { return alive_; }
  std::vector<LeaseUse> take_ended() { return std::exchange(ended_, {}); }
  /// Goes on from what an earlier process has counted, of leases that are alive; adds it to what was counted since.
  void resume(const std::vector<LeaseUse>& uses);

 private:
  struct Before {
    double energy_joules = -1;  ///< by the device's counter; negative: unknown
    double power_watts = -1;
  };
  double watts(const Device& device, double elapsed_s) const;
  static void add_waiting(const pool::Job* job, double wall_s, double held_s, LeaseUse& use);
  static void add_alone(const Device& device, double watts, double held_s, LeaseUse& use);
  static void add_shared(const Device& device, const pool::Job* job, double watts, double held_s, const JobOf& job_of,
                         LeaseUse& use);

  void end(LeaseUse use, double wall_s, double elapsed_s, std::span<const pool::Job> gone);
  void add_unseen(double wall_s, const Inventory& machine, std::span<const pool::Job> gone,
                  const std::set<std::pair<int64_t, std::string>>& known);

  LeaseUses alive_;
  std::vector<LeaseUse> ended_;
  std::map<std::string, Before> before_;  ///< by device
  double before_s_ = -1, before_wall_s_ = -1;
};

/// For how much of the time of its devices the job's run waits for others, as it reports now, 0 to 1; nothing where it
/// does not report it. A device that several ranks have waits as the one that waits least.
std::optional<double> waiting_of(const pool::Job& job, double wall_s);
/// The same of one of the devices.
std::optional<double> waiting_of(const pool::Job& job, const std::string& device, double wall_s);

/// How much of the device the work uses now, 0 to 1, by the best that it counts; by power, that at most.
Reading<double> effectiveness(const Device& device);

}  // namespace remuda::monitor

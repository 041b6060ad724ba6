// Enforcement: who is kept from device files, as the policy says ([devices] enforce).
//
//   off        nobody
//   jobs       each job, by a filter of its cgroup (confine/device_filter.h)
//   audit      the same; and the guard of the whole machine tells whom it would refuse (confine/device_guard.h)
//   everyone   the same; and the guard refuses all but root, exempt units, and jobs, which it lets to their devices
//
// The guard stays in force when the agent ends, however it does; the next agent goes on with it, and takes it away
// where the policy says so. What it refuses is read each second, and said.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/device_files.h"
#include "agent/exempt_units.h"
#include "base/clock.h"
#include "confine/device_guard.h"
#include "device/inventory.h"
#include "policy/policy.h"

namespace remuda::agent {

/// One thread. Times are those of the steady clock.
class Enforcement {
 public:
  struct Options {
    std::string root;  ///< folder of the topmost cgroup of version 2; empty: no guard, as on a recorded machine
    std::string name;  ///< of the guard
    std::function<void(const std::string&)> say;
    std::string sysfs = "/sys", dev = "/dev";
  };
  /// One without a guard.
  Enforcement() : Enforcement(Options{}) {}
  explicit Enforcement(Options options);

  /// The machine or the policy was read. To be called first when let() was for all jobs that run. `others` are devices
  /// that other managers give out, which are not guarded.
  void update(const policy::Policy& policy, const Inventory& inventory, const std::vector<std::string>& others = {});
  /// Lets a job, in this cgroup, to these nodes. An error where the policy keeps everyone from them and the job cannot
  /// be let to them; where it is only watched who uses them, that is said instead.
  Result<void> let(int64_t job, const std::string& cgroup, const std::vector<confine::DeviceNode>& nodes);
  /// The job has given its devices back.
  void withdraw(int64_t job);

  /// Whether jobs get a filter of their own.
  bool filters_jobs() const { return wanted_ != policy::Enforce::off; }
  /// The devices whose files nobody knows, so that no job could be let to them: closed to all, and not to be granted.
  std::vector<std::string> closed() const { return hides_devices() ? unknown_ : std::vector<std::string>(); }
  /// Whether users see nothing of devices that they were not granted.
  bool hides_devices() const { return in_force_ == policy::Enforce::everyone; }
  /// Whether it depends on the policy what this does.
  bool may_guard() const { return !options_.root.empty(); }

  /// Readable when step() has something to do, or needs_reading() may be true.
  std::vector<int> fds() const { return {exempt_.fd(), devices_.fd()}; }
  /// Whether a device file has come since the last call: what has one is guarded once update() knows of it.
  bool needs_reading() { return devices_.take_news() && guard_; }
  void step(double now_s);
  double next_s() const { return guard_ ? next_look_s_ : kNever_s; }

 private:
  struct Let {
    uint64_t cgroup = 0;
    std::set<confine::DeviceNode> nodes;
  };
  std::vector<std::string> note_nodes(const Inventory& inventory, const std::vector<std::string>& others);
  Result<void> set_guard();
  void go_on();
  Result<void> apply();
  void look_at_exempt();
  void report_absent(const std::vector<std::string>& absent);
  void report_refused();
  void say_obstacle(std::string& said, const Result<void>& done);

  Options options_;
  policy::Enforce wanted_ = policy::Enforce::jobs;
  std::vector<std::string> exempt_names_;
  ExemptUnits exempt_;
  DeviceFiles devices_;
  std::set<uint64_t> exempt_ids_;
  std::set<confine::DeviceNode> guarded_;   ///< also those that are not seen any more: a card may be lost for a while
  std::set<confine::DeviceNode> possible_;  ///< what may be files of devices whose own are not known
  std::vector<std::string> unknown_;        ///< ids of these
  std::map<confine::DeviceNode, std::string> labels_;
  std::map<int64_t, Let> jobs_;
  std::unique_ptr<confine::DeviceGuard> guard_;
  std::optional<policy::Enforce> in_force_;
  std::deque<confine::Refused> refused_;  ///< that were not said yet
  /// What was said last: of the guard as a whole, of its rules, of jobs that cannot be let, of units without a cgroup.
  std::string said_of_guard_, said_of_rules_, said_of_jobs_, said_of_absent_;
  double next_look_s_ = 0;
};

/// As the agent of the pool in this folder has it, for the live machine: the root of the cgroups that it sees, and a
/// name that no other pool's has.
Enforcement::Options guard_of(const std::string& pool, const std::function<void(const std::string&)>& say);

}  // namespace remuda::agent

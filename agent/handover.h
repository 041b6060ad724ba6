// Handover: whether a device is clean before the next job gets it: no process and no memory of the last one is left,
// its driver answers and asks for nothing, and the administrator's own probe (policy::Health) finds it well.
//
//   its last lease ends ──> held back ──> a reading finds it clean ──> the probe ──> another reading ──> free
//                                │
//                                └──> not clean within kHandoverPatience_s, or the probe fails: a fault, to be drained
//
// Devices that an agent finds without a lease when it starts are checked the same way: it does not know what the one
// before it has seen. A process that runs on the device without a lease holds it, as ever, and is waited for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/idle_memory.h"
#include "base/clock.h"
#include "device/inventory.h"
#include "place/held.h"
#include "policy/policy.h"
#include "pool/state.h"
#include "process/child.h"

namespace remuda::agent {

/// How long a driver may take to clean up behind the last process.
inline constexpr double kHandoverPatience_s = 30;

/// One thread. Never waits. Times are those of the steady clock.
class Handover {
 public:
  /// Starts the administrator's command for a device.
  using StartProbe = std::function<Result<process::ChildProcess>(const std::string& command, const Inventory& inventory,
                                                                 const Device& device)>;
  /// One that checks nothing.
  Handover() = default;
  Handover(IdleMemory memory, StartProbe start)
      : checks_any_(true), memory_(std::move(memory)), start_(std::move(start)) {}

  /// The agent starts: what has no lease, and is not drained, is to be checked.
  void begin(const pool::PoolState& state, const Inventory& inventory, double now_s);
  /// The pool has changed: what has lost its last lease is to be checked.
  void see(const pool::PoolState& state, double now_s);
  /// What is held back in that state, which may come after the one that see() knows.
  std::vector<place::Held> held(const pool::PoolState& state) const;

  /// Whether the machine is to be read for it.
  bool wants_reading(double now_s) const { return now_s >= next_reading_s(); }
  double next_reading_s() const;
  /// Whether devices are held back that no reading has shown yet.
  bool is_new() const;
  void reading_begins();
  /// It has come to nothing.
  void reading_failed(double now_s);
  /// The reading that began last. Where the policy cannot be read (null), nothing is found clean.
  void look(const Inventory& inventory, const policy::Health* health, double now_s);
  /// Other managers give these out, and they look after them.
  void leave(const std::vector<std::string>& devices);

  struct Fault {
    std::string device, reason;
  };
  /// Looks at the probes that run. Returns the devices that are to be drained, and why: again, until drained().
  std::vector<Fault> step(double now_s);
  void drained(const std::string& device) { checks_.erase(device); }
  /// When step() is to be called at the latest.
  double next_s(double now_s) const;

 private:
  struct Probe {
    process::ChildProcess process;
    std::string said;
    double end_s = 0;
  };
  struct Check {
    std::string after;  ///< "after job 12 of ada"
    double until_s = 0;
    double look_s = 0;        ///< when the device is looked at again
    bool is_covered = false;  ///< a reading that has begun since shows it
    bool was_looked_at = false;
    bool waits_for_process = false;  ///< which holds the device
    bool is_probed = false;
    std::string found;     ///< what is wrong so far
    bool is_over = false;  ///< and stays so
    std::unique_ptr<Probe> probe;
  };
  void add(const std::string& device, const std::string& after, double now_s);
  std::string uncleanness(const Inventory& inventory, const Device& device, Check& check) const;
  void look_at(const Inventory& inventory, const Device& device, Check& check, const policy::Health& health,
               double now_s);
  static void follow(Check& check, double now_s);

  bool checks_any_ = false;
  IdleMemory memory_;
  StartProbe start_;
  std::map<std::string, std::string> leased_;  ///< devices with leases: "after job 12 of ada"
  std::map<std::string, Check> checks_;
};

/// The command as a shell's, which sees that device alone, with the agent's own rights.
Result<process::ChildProcess> start_probe(const std::string& command, const Inventory& inventory, const Device& device);

}  // namespace remuda::agent

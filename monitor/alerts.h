// Alerts: what is wrong with the devices, or with how they are used, and the command that helps. The same rules as
// those for Prometheus (packaging/prometheus/remuda.rules.yml), for machines that have none. Pure: time comes from
// outside.
//
//   Alerts alerts;
//   alerts.take(moment, monotonic_s(), wall_s());  // once a second or so
//   for (const Alert& alert : alerts.active()) ...
//
// What is said of them, and when, is for notifier.h; what people have said of them, for attention.h.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/idle_window.h"
#include "monitor/metrics.h"

namespace remuda::monitor {

/// Over so long a device has to be idle for an alert; the policy's steps have a time of their own (idle_chain.h).
inline constexpr double kIdleFor_s = 1800;

/// All rules, as people write them.
inline constexpr std::array kRules{"held and idle",      "underused",        "used without a lease", "foreign process",
                                   "memory almost full", "throttled",        "device error",         "device lost",
                                   "needs recovery",     "narrow link",      "lease overrun",        "run waits",
                                   "checkpoint too old", "disk almost full", "agent silent"};

struct Alert {
  std::string id;  ///< names it: the same for as long as it is so, and when it is so again
  std::string rule;
  std::string device;               ///< its id; of a run, that of its first device; of a disk, a folder there; "agent"
  std::string label;                ///< what people call that here
  double since_s = 0, ended_s = 0;  ///< seconds since 1970; `ended_s` 0: it is still so
  std::string value, limit;         ///< what is, and from where on it is wrong; for people
  std::string text;                 ///< one sentence
  std::string command;              ///< to act
  std::string acknowledged_by;      ///< who looks after it; empty: nobody has said so
  double silenced_until_s = 0;      ///< 0: it is not

  static constexpr const char* kName = "alert";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "names it, for `remuda alerts --ack`");
    visit("rule", self.rule, "what is wrong, in two or three words", true);
    visit("device", self.device, "id of the device; of a run, that of its first device; of a disk, a folder there",
          true);
    visit("label", self.label, "what people call that here");
    visit("since_s", self.since_s, "since when, in seconds since 1970", true);
    visit("ended_s", self.ended_s, "until when; absent: it is still so");
    visit("value", self.value, "what is");
    visit("limit", self.limit, "from where on it is wrong");
    visit("text", self.text, "one sentence");
    visit("command", self.command, "to act");
    visit("acknowledged_by", self.acknowledged_by, "who looks after it");
    visit("silenced_until_s", self.silenced_until_s, "until when it is not said, in seconds since 1970");
  }
  bool operator==(const Alert&) const = default;
};

/// One thread.
class Alerts {
 public:
  /// Takes a reading; `now_s` is a steady time, by which causes last: no clock that is set makes an alert begin. Begins
  /// those alerts whose cause has lasted long enough, and ends those of which it says that they have none any more:
  /// where it does not say, they go on.
  void take(const Moment& moment, double now_s, double wall_s);

  /// Those that are so now, by rule and device.
  std::vector<Alert> active() const;

 private:
  struct Cause {
    double began_s = 0, seen_s = 0;  ///< steady times
    double since_s = 0;              ///< when it began, in seconds since 1970
    bool is_alert = false;
    Alert alert;
  };
  /// The time of a device with the job that has held it for longest.
  struct Holding {
    int64_t job = 0;
    double began_s = 0;  ///< its lease (pool/clocks.h)
    IdleWindow window{kIdleFor_s};
  };
  void see(const char* rule, const Device& device, std::optional<bool> is_wrong, double lasting_s, Alert alert,
           int64_t code = 0);
  void keep(std::string_view rule, const Device& device);
  bool is_alert(const char* rule, const Device& device) const;
  void check_use(const Device& device, const Moment& moment);
  void check_memory(const Device& device);
  void check_health(const Device& device);
  void check_errors(const Device& device);
  void check_leases(const Moment& moment);
  void check_run(const pool::Job& job, const Moment& moment);
  void check_checkpoint(const pool::Job& job, const Moment& moment);
  void check_disk(const DiskRoom& disk);
  void check_gone(const Moment& moment);
  void check_agent(const Moment& moment);
  void keep_of_pool(const Moment& moment);

  double now_s_ = 0, wall_s_ = 0;                                ///< of the reading
  std::map<std::pair<std::string, std::string>, Cause> causes_;  ///< by rule, with a code, and device
  std::map<std::string, Holding> held_;                          ///< by device
  std::map<std::string, Device> known_;                          ///< by device: as it was when it was seen first
  std::map<std::string, std::pair<double, double>>
      memory_;  ///< by device: the most used bytes, and when they rose to that
};

}  // namespace remuda::monitor

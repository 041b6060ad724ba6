// Attention: which alerts somebody has acknowledged, and which are not to be said for a while. Plain data, and its file
// beside the history of devices.
//
//   acknowledged:  somebody looks after it: it is shown as theirs, and not counted; over with the alert itself
//   silenced:      a rule, of one device or of all, is not said until some time; what still is so then, is said then
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/alerts.h"

namespace remuda::monitor {

struct Acknowledged {
  std::string alert;  ///< its id
  std::string by;
  double at_s = 0;  ///< seconds since 1970

  static constexpr const char* kName = "acknowledged";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("alert", self.alert, "id of the alert", true);
    visit("by", self.by, "who looks after it", true);
    visit("at_s", self.at_s, "since when, in seconds since 1970");
  }
  bool operator==(const Acknowledged&) const = default;
};

struct Silence {
  std::string rule;
  std::string device;  ///< its id, or what people call it here; empty: all
  std::string by;
  double until_s = 0;  ///< seconds since 1970

  static constexpr const char* kName = "silence";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("rule", self.rule, "of which rule", true);
    visit("device", self.device, "of which device; absent: of all");
    visit("by", self.by, "who does not want to hear of it", true);
    visit("until_s", self.until_s, "until when, in seconds since 1970", true);
  }
  bool operator==(const Silence&) const = default;
};

struct Attention {
  std::vector<Acknowledged> acknowledged;
  std::vector<Silence> silences;

  static constexpr const char* kName = "attention";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("acknowledged", self.acknowledged, "alerts that somebody looks after");
    visit("silences", self.silences, "rules that are not said for a while");
  }
  bool operator==(const Attention&) const = default;
};

/// With who looks after each, and until when it is silenced.
std::vector<Alert> marked(std::vector<Alert> alerts, const Attention& attention, double wall_s);

/// What was written in the folder of a history; nothing yet where there is no file.
Result<Attention> read_attention(const std::string& folder);
/// Changes it, as the only one that does at that time; an error where another process takes longer than `patience_s`.
Result<void> change_attention(const std::string& folder, const std::function<void(Attention&)>& change,
                              double patience_s = 2);

/// The alerts that are so now, for others to read: written by the process that watches, whole or not at all.
Result<void> write_alerts(const std::string& folder, const std::vector<Alert>& alerts, double wall_s);
struct WrittenAlerts {
  double time_s = 0;  ///< when; 0: nobody has written any
  std::vector<Alert> alerts;
};
Result<WrittenAlerts> read_alerts(const std::string& folder);

}  // namespace remuda::monitor

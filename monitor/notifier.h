// Notifier: which alerts are to be said now, of those that are so: each once when it begins and once when it is over.
// What is silenced is not said before that is over, and what somebody looks after does not begin again. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "monitor/alerts.h"

namespace remuda::monitor {

/// One thread.
class Notifier {
 public:
  /// `active` are all alerts of this moment, as marked() gives them. Those that are over have their `ended_s`.
  std::vector<Alert> take(const std::vector<Alert>& active, double wall_s);

 private:
  std::map<std::string, Alert> said_;  ///< by id
};

}  // namespace remuda::monitor

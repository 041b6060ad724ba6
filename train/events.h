// Events: what a worker tells the process that launched it, a line of JSON each. See docs/run-report.md.
#pragma once

#include <span>
#include <string>

#include "balance/balancer.h"
#include "base/json.h"

namespace remuda::train {

class Events {
 public:
  /// Writes to `fd`; -1 drops everything.
  explicit Events(int fd) : fd_(fd) {}
  void send(const Json& event) const;

 private:
  int fd_;
};

Json to_json(const balance::BalanceDecision& decision);

}  // namespace remuda::train

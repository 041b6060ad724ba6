// Events: what a worker reports to the process that launched it, one line of JSON each. See docs/run-report.md.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "balance/balancer.h"
#include "base/json.h"

namespace remuda::train {

/// Training never waits for the launcher, which may be stopped or blocked by its own output: a thread writes the
/// events. While they cannot be written, only the newest `step` event is kept; all other events are kept, in order.
class Events {
 public:
  /// Writes to `fd`, which must stay open as long as this lives; -1 drops everything.
  explicit Events(int fd);
  /// Waits until all events are written, or the reader is gone.
  ~Events();
  /// Never blocks. Any thread.
  void send(const Json& event) const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

Json to_json(const balance::BalanceDecision& decision);

}  // namespace remuda::train

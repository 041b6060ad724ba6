#include "train/events.h"

#include "base/file.h"

namespace remuda::train {

void Events::send(const Json& event) const {
  // A launcher that is gone takes its workers with it; there is nobody left to tell.
  if (fd_ >= 0) (void)write_all(fd_, to_line(event) + "\n", "the event stream");
}

Json to_json(const balance::BalanceDecision& decision) {
  return {{"step", decision.step},
          {"shares", decision.shares},
          {"predicted_step_s", decision.predicted_step_s},
          {"predicted_gain", decision.predicted_gain},
          {"reason", decision.reason}};
}

}  // namespace remuda::train

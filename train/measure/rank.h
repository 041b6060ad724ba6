// One rank of `remuda bench links`.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "measure/plan.h"
#include "train/events.h"

namespace remuda::train {

/// Collective: all ranks of the plan go through its phases together and send what they measured (plan.h). A figure that
/// cannot be had is reported and not an error; an error is a peer that went away.
Result<void> measure_rank(const measure::Plan& plan, comm::Communicator& communicator, const Events& events);

}  // namespace remuda::train

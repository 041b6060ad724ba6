// One rank of `remuda bench links`.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"
#include "measure/plan.h"
#include "train/events.h"

namespace remuda::train {

/// Collective: all ranks of the plan go through its phases together and send what they measured (plan.h). A figure that
/// cannot be measured is reported, and is not an error; an error means that a peer is gone.
Result<void> measure_rank(const measure::Plan& plan, comm::Communicator& communicator, const Events& events);

}  // namespace remuda::train

// ClockOffset: how the monotonic clocks of a run's hosts differ, so that what ranks record can stand on one axis.
#pragma once

#include <span>

#include "base/result.h"
#include "comm/communicator.h"

namespace remuda::train {

/// Rank 0's clock shows this rank's time plus `offset_s`, give or take `error_s`.
struct ClockOffset {
  double offset_s = 0, error_s = 0;
};

/// A barrier as one rank saw it, on its own clock.
struct BarrierTimes {
  double entered_s = 0, left_s = 0;
};

/// From barriers that both ranks took part in. Nobody leaves a barrier before all have entered it: so rank 0's entry
/// came before my leaving, and mine before rank 0's, and the offset is in
/// [max(theirs.entered - mine.left), min(theirs.left - mine.entered)] over all barriers. Its middle, and half its
/// width.
ClockOffset offset_between(std::span<const BarrierTimes> mine, std::span<const BarrierTimes> theirs);

/// Collective. Ranks of one host share its clock: none, and no error.
Result<ClockOffset> clock_offset(comm::Communicator& communicator);

}  // namespace remuda::train

// Picture: all that one frame is made of, taken of a source at one moment.
#pragma once

#include <string>
#include <vector>

#include "snapshot/hosts.h"
#include "snapshot/source.h"
#include "top/choice.h"

namespace remuda::top {

struct Picture {
  Result<snapshot::Seen> seen = failed("reading the machine");
  snapshot::Histories histories;  ///< by the devices' keys; none of a device of which the source says nothing
  Range range = Range::hour;      ///< that they are of
  std::string clock;              ///< when it was, by the clock on the wall: "14:20:31"
  std::string trouble;            ///< why there is nothing newer; empty: it is the newest
  std::vector<std::string> old;   ///< sentences on parts of it that are older than the rest
};

double seconds_of(Range range);

/// Asks the source anew: for histories only where there is a step more of them than in `before`. Takes as long as the
/// source takes. Where it says nothing, what was seen before stays, with the trouble.
Picture next_picture(snapshot::Source& source, Range range, const Picture& before);

}  // namespace remuda::top

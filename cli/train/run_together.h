// What devices made together, beside what each would have made alone: why that was little, and what to leave out where
// the fastest of them alone would have made more. Pure.
//
// By the report: alone_samples_per_s of each device, which knows no wait for samples, so the wait that a sample cost in
// the run is added. A difference below a twentieth is what speeds differ by from one minute to the next.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"

namespace remuda::cli {

struct SlowerTogether {
  size_t fastest = 0;                                                ///< a rank: the device that is faster alone
  double alone_per_s = 0, together_per_s = 0;                        ///< samples/s, of that device and of the run
  double saved() const { return 1 - together_per_s / alone_per_s; }  ///< of the time of a step
};

/// Nothing where they were faster together, or that is not known: where ranks came or went, or have roles. `avoidable`:
/// the part of a step that another setting would have saved; the run is judged as if it had.
std::optional<SlowerTogether> slower_together(const Json& report, double avoidable = 0);

/// With the speed of each, and the list of devices to give.
std::string slower_together_text(const Json& report, const SlowerTogether& slower);

/// Why the run was much slower than the sum of its devices alone, where that is no matter of its steps (of which
/// bottleneck_of() tells); empty where it was not, or where that was not measured.
std::string efficiency_text(const Json& report);

}  // namespace remuda::cli

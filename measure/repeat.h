// How a figure is taken: again and again for some time, and then the median.
#pragma once

#include <functional>
#include <vector>

namespace remuda::measure {

/// The middle one; of an even number the upper of the two. Not empty.
double median(std::vector<double> values);

/// The median of what `timed` returns (seconds), called for `seconds` and three times at least, after one call that
/// does not count.
double median_s(double seconds, const std::function<double()>& timed);

/// Seconds that `call` takes.
double time_s(const std::function<void()>& call);

}  // namespace remuda::measure

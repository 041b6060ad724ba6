// Property tests of this program draw the same cases every time. RC_PARAMS set from outside wins.

#include <cstdlib>

namespace {

[[maybe_unused]] const int kSeeded = ::setenv("RC_PARAMS", "seed=1998", 0);

}  // namespace

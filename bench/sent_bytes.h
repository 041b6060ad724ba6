// What each rank sends in a collective call over TCP, counted, beside what theory says. Two cores say nothing of the
// time that 16 ranks take; the bytes are the same on any machine.
#pragma once

#include <vector>

#include "base/result.h"
#include "bench/figure.h"

namespace remuda::bench {

/// The rank that sends most, for 4, 8 and 16 ranks; `limit` is the least that such a rank can send.
Result<std::vector<Figure>> count_sent_bytes();

}  // namespace remuda::bench

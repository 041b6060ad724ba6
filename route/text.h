// A plan for people, in 80 columns.
#pragma once

#include <string>

#include "route/plan.h"

namespace remuda::route {

/// What is best at this size, why, and what other sizes and algorithms give; then its rounds and the load of its links.
std::string plan_text(const Plan& plan, double bytes);

/// "340 ns", "12.5 us", "3.21 ms", "1.50 s".
std::string duration_text(double seconds);

/// The devices of a candidate in their order, islands parted by "|": "0 1 2 | 3 4 5" where all labels begin with one
/// word, else as they are.
std::string order_text(const Network& network, const Candidate& candidate);

/// The transfers of a round, those that follow each other as one chain: "0>1>2>0 3<>4".
std::string transfers_text(const Network& network, const Round& round);

}  // namespace remuda::route

// What no all-reduce over a network can go below.
#pragma once

#include "route/network.h"
#include "route/rounds.h"

namespace remuda::route {

/// No schedule in which only the devices add up takes less than the larger of the two parts of this cost; switches that
/// add up themselves can.
///   latency_s   the least of any route's
///   s_per_byte  any element takes 2 (n-1) transfers among n devices, as each must hear of all others (gossip by calls
///               in one direction, Harary and Schwenk 1974), and the devices' own channels carry these; and all of the
///               buffer must leave, and reach, each device, and each island
/// Transfers take at least what Rounds says they do. 0 of both where a route is not known.
Cost least_cost(const Network& network);

/// That cost for so many bytes.
double least_seconds(const Cost& least, double bytes);

/// Sets of devices that are joined, one to the next, by routes of at least some speed, which joins no others: for each
/// such speed that gives several sets, not all of one device. Fastest first. A speed less than 5 % above the next lower
/// one counts as that one, as measurements scatter.
std::vector<std::vector<std::vector<size_t>>> island_partitions(const Network& network);

/// All devices, island after island, and within each the islands of faster links one after the other.
std::vector<size_t> nested_order(const Network& network);

}  // namespace remuda::route

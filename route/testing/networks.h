// Networks for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "route/network.h"
#include "route/plan.h"

namespace remuda::route {

inline constexpr double kMiB = 1 << 20;

/// A channel of their own for each pair and direction.
Network full_mesh(size_t size, double gbps, double latency_us = 1);
/// Of which each pair has another speed, up to 3 % below 100 GB/s; measured.
Network scattered_mesh(size_t size);
/// With device places[i] of this network as device i.
Network relabelled(const Network& network, const std::vector<size_t>& places);
/// One channel from each device to a switch, and one back.
Network star(size_t size, double gbps, double latency_us = 1);
/// Of each island a full mesh; one uplink in each direction between an island and all others.
Network two_level(const std::vector<size_t>& islands, double inside_gbps, double between_gbps, double latency_us = 1);
/// Of all GPUs of a recorded machine, NAME.json of testdata/machines.
Network machine(const std::string& name);
/// By rapidcheck: a two-level tree of random speeds, some of its branches half duplex, and direct links across it.
Network arbitrary_network(size_t size);

/// What ranks have after a candidate's rounds: how often each rank's value is in each rank's sum, by rank, chunk and
/// contributing rank. A step's transfers carry what was there when the step began.
using Sums = std::vector<std::vector<std::vector<int>>>;
Sums simulate(const Pattern& pattern);
/// Whether all have all once.
bool is_all_reduced(const Sums& sums);

}  // namespace remuda::route

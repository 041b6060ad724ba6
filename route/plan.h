// Plan: how some devices best do an all-reduce: which algorithm for which size, in what order, over which links, and
// what it takes. Pure.
//
// The devices are those of one network (network.h), the algorithms those of pattern.h, and the time is that of rounds
// in which no link is shared beyond what it carries (rounds.h). Nothing of the devices' own speed is in it: adding up
// is taken to be hidden behind the links.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "route/network.h"
#include "route/pattern.h"
#include "route/rounds.h"
#include "route/search.h"

namespace remuda::route {

/// An algorithm with its devices in their places.
struct Candidate {
  Pattern pattern;
  std::vector<size_t> island_sizes;  ///< of those that have islands, in the order of the positions
  Order order;
  Cost cost;
  bool exact = false;  ///< no other order of these devices is better for this algorithm and these islands
};

/// The best for every size from this one up to the next one's.
struct SizeRange {
  double from_bytes = 0;
  size_t candidate = 0;  ///< position in Plan::candidates
};

struct Plan {
  Network network;
  std::vector<Candidate> candidates;  ///< the best of each algorithm; several where that depends on the size
  std::vector<SizeRange> ranges;      ///< ascending, the first from 0
  std::optional<Cost> index_ring;     ///< what a ring through the devices as they were given takes; where it can be
  Cost least;                         ///< see least_cost()
  bool exact = false;                 ///< of all candidates

  const Candidate& best(double bytes) const;
  /// The fastest at this size of each algorithm, fastest first.
  std::vector<size_t> by_algorithm(double bytes) const;
};

inline constexpr size_t kMostRanks = 64;

/// For the devices of the network in every order; never slower than the ring of the order given. Errors: fewer than two
/// devices or more than kMostRanks; no way to reach all of them over routes of known speed.
Result<Plan> plan_all_reduce(Network network);

/// A transfer of a round: devices, and which part of the buffer, from 0 to 1.
struct Transfer {
  size_t from = 0, to = 0;
  double begin = 0, end = 0;
  bool adds = false;
};

struct Round {
  size_t step = 0;
  std::vector<Transfer> transfers;
  Cost cost;
};

/// What the candidate does, round by round.
std::vector<Round> rounds_of(const Network& network, const Candidate& candidate);

/// How much passes each channel in all rounds together, by channel; 1 is the whole buffer once.
std::vector<double> carried(const Network& network, const std::vector<Round>& rounds);

/// What the time goes to, at some size.
struct Limit {
  size_t channel = 0;  ///< of the link that most of the time waits for; of several, of the one that most routes share
  double link_share = 0;  ///< of the time, waiting for this link, in either direction
  double latency_share = 0;
};
Limit limit_of(const Network& network, const std::vector<Round>& rounds, double bytes);

}  // namespace remuda::route

// The order of devices in which a pattern is fastest.
#pragma once

#include <optional>
#include <vector>

#include "route/network.h"
#include "route/pattern.h"
#include "route/rounds.h"

namespace remuda::route {

using Order = std::vector<size_t>;  ///< the device at each position
/// Device i at position i.
Order index_order(size_t size);

/// An order, and what the pattern takes with it.
struct Found {
  Cost cost;
  Order order;
};

struct SearchResult {
  /// None is at least as good as another at every size; the given order's is among them, or one that beats it. Empty
  /// where every order tried needs a route that is not known.
  std::vector<Found> best;
  bool exact = false;  ///< all orders were tried
  size_t moves = 0;    ///< that were looked at for all orders together
};

/// As many orders are tried one by one: those of 8 devices.
inline constexpr size_t kMostOrdersTried = 40320;
/// A descent begins no other order after so many moves.
inline constexpr size_t kMostDescentMoves = 1'000'000;

/// What a pattern takes in some order; for many orders, one after the other.
class Pricer {
 public:
  Pricer(const Network& network, const Pattern& pattern);
  /// Nothing where a route is not known.
  std::optional<Cost> cost(const Order& order);
  /// That were looked at for all orders so far.
  size_t moves() const { return moves_; }

 private:
  /// Steps that differ only in what lies in the chunks take the same.
  struct Repeated {
    Step step;
    double times = 1;
  };
  Rounds rounds_;
  size_t chunks_;
  std::vector<Repeated> steps_;
  size_t moves_ = 0;
};

/// Starts from `start`; devices change places within the pattern's groups. Up to kMostOrdersTried orders all are tried.
/// Beyond, two descents from `start` and from `others`, one to the shortest time per byte and one to the least latency,
/// exchange two devices or turn a stretch around as long as that helps, up to kMostDescentMoves.
SearchResult best_orders(const Network& network, const Pattern& pattern, const Order& start,
                         const std::vector<Order>& others = {});

/// Adds what no other of them beats; of equals the first stays.
void add_unless_beaten(Found found, std::vector<Found>& best);

}  // namespace remuda::route

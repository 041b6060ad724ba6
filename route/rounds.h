// Rounds: a step's moves in groups that share no channel beyond what it carries, and what they take.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "route/network.h"
#include "route/pattern.h"

namespace remuda::route {

/// The time of something as a function of the buffer's size (the alpha-beta model, Hockney 1994).
struct Cost {
  double latency_s = 0, s_per_byte = 0;

  double seconds(double bytes) const { return latency_s + s_per_byte * bytes; }
  Cost& operator+=(const Cost& other) {
    latency_s += other.latency_s;
    s_per_byte += other.s_per_byte;
    return *this;
  }
  bool operator==(const Cost&) const = default;
};

/// Divides steps into rounds. All transfers of a round go at once, each at its route's speed: on no channel do these
/// add up to more than its own. A round takes the longest of its latencies and the longest of its transfers; the next
/// one begins after it. This is edge colouring, with channels that may carry several: longest first, each into the
/// first round that has room; of equals, those first that go to the next device, then those to the one after, so that
/// all to all on a switch keeps every link busy. There can be more rounds than the least possible. What stands in which
/// place of the step makes no difference, only who sends how much to whom.
class Rounds {
 public:
  /// The network outlives this.
  explicit Rounds(const Network& network) : network_(network) {}

  /// What the step takes where devices[p] stands at position p and the buffer is cut into `chunks`. Nothing where a
  /// route is not known.
  std::optional<Cost> divide(const Step& step, size_t chunks, std::span<const size_t> devices);
  /// Of the step divided last: the round of each move.
  std::span<const size_t> round_of() const { return rounds_; }
  /// And what each round takes.
  std::span<const Cost> costs() const { return costs_; }

 private:
  size_t find_room(const Route& route);

  const Network& network_;
  std::vector<size_t> rounds_, by_length_;
  std::vector<double> lengths_;
  std::vector<Cost> costs_;
  std::vector<double> load_;  ///< GB/s by round and channel
};

}  // namespace remuda::route

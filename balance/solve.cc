#include "balance/solve.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/check.h"

namespace remuda::balance {
namespace {

double share_seconds(const CostLine& line, int share) { return share == 0 ? 0 : line.seconds(share); }

/// The most samples a device finishes within `limit_s`, but never less than its lower bound.
template <typename Seconds>
int most_within(const Seconds& seconds, size_t device, const Bounds& bounds, double limit_s) {
  int64_t low = bounds.low, high = bounds.high;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (seconds(device, static_cast<int>(middle)) <= limit_s)
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<int>(low);
}

template <typename Seconds>
int64_t all_within(const Seconds& seconds, std::span<const Bounds> bounds, double limit_s, std::vector<int>& shares) {
  for (size_t i = 0; i < bounds.size(); ++i) shares[i] = most_within(seconds, i, bounds[i], limit_s);
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

/// Assigns the remaining samples one by one, each to the device that finishes it first.
template <typename Seconds>
void hand_out(const Seconds& seconds, std::span<const Bounds> bounds, int64_t left, std::vector<int>& shares) {
  for (; left > 0; --left) {
    size_t best = bounds.size();
    for (size_t i = 0; i < bounds.size(); ++i) {
      if (shares[i] == bounds[i].high) continue;
      if (best == bounds.size() || seconds(i, shares[i] + 1) < seconds(best, shares[best] + 1)) best = i;
    }
    ++shares[best];
  }
}

// Assigning all samples one by one is exact, as no device gets faster by taking more. The bisection only skips the
// samples that are finished within a time at which some are still left over.
template <typename Seconds>
std::vector<int> solve(const Seconds& seconds, int total, std::span<const Bounds> bounds) {
  REMUDA_CHECK(total >= 0, "there is a batch");
  std::vector<Bounds> within(bounds.begin(), bounds.end());
  int64_t least = 0, most = 0;
  double late_s = 0;
  for (size_t i = 0; i < within.size(); ++i) {
    within[i].high = std::min(within[i].high, total);
    if (within[i].low < 0 || within[i].low > within[i].high) return {};
    least += within[i].low;
    most += within[i].high;
    late_s = std::max(late_s, seconds(i, within[i].high));
  }
  if (least > total || most < total) return {};

  std::vector<int> shares(within.size()), tried(within.size());
  int64_t given = least;
  for (size_t i = 0; i < within.size(); ++i) shares[i] = within[i].low;
  double early_s = 0;
  for (int round = 0; round < 40 && given < total; ++round) {
    const double middle_s = (early_s + late_s) / 2;
    const int64_t within_middle = all_within(seconds, within, middle_s, tried);
    if (within_middle > total) {
      late_s = middle_s;
    } else {
      early_s = middle_s;
      given = within_middle;
      shares = tried;
    }
  }
  hand_out(seconds, within, total - given, shares);
  return shares;
}

}  // namespace

std::vector<int> solve_min_max(std::span<const CostLine> lines, int total, std::span<const Bounds> bounds) {
  REMUDA_CHECK(lines.size() == bounds.size(), "one line and one pair of bounds per device");
  for (const CostLine& line : lines)
    REMUDA_CHECK(line.fixed_s >= 0 && line.per_sample_s >= 0, "more samples never take less time");
  return solve([&](size_t device, int share) { return share_seconds(lines[device], share); }, total, bounds);
}

std::vector<int> solve_min_max(const ShareSeconds& seconds, int total, std::span<const Bounds> bounds) {
  return solve(seconds, total, bounds);
}

double slowest_s(std::span<const CostLine> lines, std::span<const int> shares) {
  REMUDA_CHECK(lines.size() == shares.size(), "one line and one share per device");
  double slowest = 0;
  for (size_t i = 0; i < lines.size(); ++i) slowest = std::max(slowest, share_seconds(lines[i], shares[i]));
  return slowest;
}

}  // namespace remuda::balance

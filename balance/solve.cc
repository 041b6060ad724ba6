#include "balance/solve.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/check.h"

namespace remuda::balance {
namespace {

double share_seconds(const CostLine& line, int share) { return share == 0 ? 0 : line.seconds(share); }

/// The most samples a device finishes within `limit_s`, but never less than its lower bound.
int most_within(const CostLine& line, const Bounds& bounds, double limit_s) {
  int64_t low = bounds.low, high = bounds.high;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (share_seconds(line, static_cast<int>(middle)) <= limit_s)
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<int>(low);
}

int64_t all_within(std::span<const CostLine> lines, std::span<const Bounds> bounds, double limit_s,
                   std::vector<int>& shares) {
  for (size_t i = 0; i < lines.size(); ++i) shares[i] = most_within(lines[i], bounds[i], limit_s);
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

/// Assigns the remaining samples one by one, each to the device that finishes it first.
void hand_out(std::span<const CostLine> lines, std::span<const Bounds> bounds, int64_t left, std::vector<int>& shares) {
  for (; left > 0; --left) {
    size_t best = lines.size();
    for (size_t i = 0; i < lines.size(); ++i) {
      if (shares[i] == bounds[i].high) continue;
      if (best == lines.size() || lines[i].seconds(shares[i] + 1) < lines[best].seconds(shares[best] + 1)) best = i;
    }
    ++shares[best];
  }
}

}  // namespace

// Assigning all samples one by one is exact, as no device gets faster by taking more. The bisection only skips the
// samples that are finished within a time at which some are still left over.
std::vector<int> solve_min_max(std::span<const CostLine> lines, int total, std::span<const Bounds> bounds) {
  REMUDA_CHECK(lines.size() == bounds.size() && total >= 0, "one line and one pair of bounds per device");
  std::vector<Bounds> within(bounds.begin(), bounds.end());
  int64_t least = 0, most = 0;
  double late_s = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    REMUDA_CHECK(lines[i].fixed_s >= 0 && lines[i].per_sample_s >= 0, "more samples never take less time");
    within[i].high = std::min(within[i].high, total);
    if (within[i].low < 0 || within[i].low > within[i].high) return {};
    least += within[i].low;
    most += within[i].high;
    late_s = std::max(late_s, lines[i].seconds(within[i].high));
  }
  if (least > total || most < total) return {};

  std::vector<int> shares(lines.size()), tried(lines.size());
  int64_t given = least;
  for (size_t i = 0; i < lines.size(); ++i) shares[i] = within[i].low;
  double early_s = 0;
  for (int round = 0; round < 40 && given < total; ++round) {
    const double middle_s = (early_s + late_s) / 2;
    const int64_t within_middle = all_within(lines, within, middle_s, tried);
    if (within_middle > total) {
      late_s = middle_s;
    } else {
      early_s = middle_s;
      given = within_middle;
      shares = tried;
    }
  }
  hand_out(lines, within, total - given, shares);
  return shares;
}

double slowest_s(std::span<const CostLine> lines, std::span<const int> shares) {
  REMUDA_CHECK(lines.size() == shares.size(), "one line and one share per device");
  double slowest = 0;
  for (size_t i = 0; i < lines.size(); ++i) slowest = std::max(slowest, share_seconds(lines[i], shares[i]));
  return slowest;
}

}  // namespace remuda::balance

#include "balance/hindsight.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace remuda::balance {
namespace {

constexpr size_t kMostSteps = 64;
constexpr int kCoarse = 16;     // the search begins with moves of this part of the batch, and halves them
constexpr int kMostMoves = 16;  // of one size

// With few steps, this much noise is assumed, with the weight of so many steps.
constexpr double kAssumedNoise = 0.04;
constexpr double kAssumedCount = 6;

/// What one step would have taken: the slowest device's time.
double step_seconds(std::span<const CostLine> lines, std::span<const double> factors, std::span<const int> shares) {
  double slowest = 0;
  for (size_t i = 0; i < lines.size(); ++i)
    if (shares[i] > 0) slowest = std::max(slowest, factors[i] * lines[i].seconds(shares[i]));
  return slowest;
}

double all_seconds(std::span<const CostLine> lines, std::span<const double> factors, std::span<const int> shares) {
  double sum = 0;
  for (; !factors.empty(); factors = factors.subspan(lines.size()))
    sum += step_seconds(lines, factors.first(lines.size()), shares);
  return sum;
}

}  // namespace

void Hindsight::add(std::span<const int> shares, std::span<const double> seconds) {
  steps_.push_back({{shares.begin(), shares.end()}, {seconds.begin(), seconds.end()}});
  if (steps_.size() > kMostSteps) steps_.pop_front();
}

void Hindsight::keep(int newest) {
  while (steps() > newest) steps_.pop_front();
}

std::vector<double> Hindsight::factors(std::span<const CostLine> lines) const {
  std::vector<double> factors;
  for (const Step& step : steps_)
    for (size_t i = 0; i < lines.size(); ++i)
      factors.push_back(step.shares[i] > 0 ? step.seconds[i] / lines[i].seconds(step.shares[i]) : 1);
  return factors;
}

HindsightGain Hindsight::gain(std::span<const CostLine> lines, std::span<const int> present,
                              std::span<const int> next) const {
  const std::vector<double> off = factors(lines);
  const double count = steps(), present_s = all_seconds(lines, off, present) / count;
  double sum = 0, squares = 0;
  for (size_t begin = 0; begin < off.size(); begin += lines.size()) {
    const auto step = std::span(off).subspan(begin, lines.size());
    const double saved = (step_seconds(lines, step, present) - step_seconds(lines, step, next)) / present_s;
    sum += saved;
    squares += saved * saved;
  }
  const double mean = sum / count, seen = std::max(0.0, squares - sum * mean);
  const double variance = (kAssumedCount * kAssumedNoise * kAssumedNoise + seen) / (kAssumedCount + count);
  return {mean, std::sqrt(variance / count)};
}

// The sum over steps of the slowest time is convex in the shares, so that a search by moves between two devices comes
// near its least value.
std::vector<int> Hindsight::best(std::span<const CostLine> lines, std::span<const Bounds> bounds,
                                 std::vector<int> start) const {
  const std::vector<double> off = factors(lines);
  const int batch = std::accumulate(start.begin(), start.end(), 0);
  std::vector<int> best = std::move(start);
  double least = all_seconds(lines, off, best);
  for (int size = std::max(1, batch / kCoarse); size > 0; size /= 2) {
    for (int moves = 0; moves < kMostMoves; ++moves) {
      std::vector<int> better;
      for (size_t from = 0; from < best.size(); ++from)
        for (size_t to = 0; to < best.size(); ++to) {
          if (from == to || best[from] - size < bounds[from].low || best[to] + size > bounds[to].high) continue;
          std::vector<int> tried = best;
          tried[from] -= size;
          tried[to] += size;
          const double seconds = all_seconds(lines, off, tried);
          if (seconds < least) least = seconds, better = std::move(tried);
        }
      if (better.empty()) break;
      best = std::move(better);
    }
  }
  return best;
}

}  // namespace remuda::balance

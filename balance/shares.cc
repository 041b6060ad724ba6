#include "balance/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace remuda::balance {

std::vector<int> apportion(int total, std::span<const double> weights) {
  REMUDA_CHECK(total >= 0 && !weights.empty(), "there is something to split, and someone to take it");
  for (const double weight : weights) REMUDA_CHECK(std::isfinite(weight) && weight >= 0, "a weight is a proportion");
  const double largest = *std::max_element(weights.begin(), weights.end());
  const auto scaled = [&](size_t i) { return largest > 0 ? weights[i] / largest : 1.0; };

  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += scaled(i);
  std::vector<int> parts(weights.size());
  std::vector<double> remainders(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = total * (scaled(i) / sum);
    parts[i] = std::min(static_cast<int>(exact), total);
    remainders[i] = scaled(i) > 0 ? exact - parts[i] : -1;
  }

  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int left = total - std::accumulate(parts.begin(), parts.end(), 0);
  REMUDA_CHECK(left >= 0 && static_cast<size_t>(left) <= parts.size(), "each remainder is less than one");
  for (int i = 0; i < left; ++i) ++parts[order[i]];
  return parts;
}

std::vector<int> apportion(int total, std::span<const int> weights) {
  return apportion(total, std::vector<double>(weights.begin(), weights.end()));
}

std::vector<int> apportion(int total, std::span<const int> weights, int unit, int least) {
  const int rest = total % unit;
  const bool is_part = rest >= least || total < unit;  // else it joins the part before it
  std::vector<int> parts = apportion(total / unit + (rest > 0 && is_part ? 1 : 0), weights);
  int left = total;
  int* last = nullptr;
  for (int& part : parts) {
    part = std::min(part * unit, left);
    left -= part;
    if (part > 0) last = &part;
  }
  if (last) *last += left;
  return parts;
}

int least_unit(int total, int least) {
  int unit = std::min(least, total);
  while (total % unit > 0) ++unit;
  return unit;
}

}  // namespace remuda::balance

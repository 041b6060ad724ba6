// The min-max problem behind every split: which integer shares make the slowest device finish earliest.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "balance/cost_line.h"

namespace remuda::balance {

struct Bounds {
  int low = 0;
  int high = 1 << 30;
};

/// Shares that add up to `total`, each within its bounds, with the smallest possible max over i of
/// lines[i].seconds(shares[i]). Exact; ties go to the lower rank. Empty when the bounds leave no such shares.
/// No line falls (both parts >= 0); one line and one pair of bounds per device.
std::vector<int> solve_min_max(std::span<const CostLine> lines, int total, std::span<const Bounds> bounds);

/// The same where times are no lines: `seconds` of a device with a share, which does not fall as the share grows.
using ShareSeconds = std::function<double(size_t device, int share)>;
std::vector<int> solve_min_max(const ShareSeconds& seconds, int total, std::span<const Bounds> bounds);

/// max over i of lines[i].seconds(shares[i]); a device with share 0 costs nothing.
double slowest_s(std::span<const CostLine> lines, std::span<const int> shares);

}  // namespace remuda::balance

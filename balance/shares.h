// Shares: how many samples of a global batch each rank takes.
#pragma once

#include <span>
#include <vector>

namespace remuda::balance {

/// Splits `total` into integers in proportion to `weights` (largest remainder, ties to the lower rank; all-zero weights
/// count as equal). The parts add up to `total`. Weights are finite and not negative; there is at least one.
std::vector<int> apportion(int total, std::span<const double> weights);
std::vector<int> apportion(int total, std::span<const int> weights);
/// The same in whole units, as far as `total` is one of them: what is left of the last belongs to the last part that is
/// not empty. No part has fewer than `least`, except where `total` is less; `least` is at most `unit`.
std::vector<int> apportion(int total, std::span<const int> weights, int unit, int least = 1);
/// The smallest unit of shares of `total` in which no part has fewer than `least`.
int least_unit(int total, int least);

}  // namespace remuda::balance

// Shares: how many samples of a global batch each rank takes.
#pragma once

#include <span>
#include <vector>

namespace remuda::balance {

/// Splits `total` into integers in proportion to `weights` (largest remainder, ties to the lower rank; all-zero weights
/// count as equal). The parts add up to `total`. Weights are finite and not negative; there is at least one.
std::vector<int> apportion(int total, std::span<const double> weights);
std::vector<int> apportion(int total, std::span<const int> weights);

}  // namespace remuda::balance

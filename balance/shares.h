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
/// not empty.
std::vector<int> apportion(int total, std::span<const int> weights, int unit);

}  // namespace remuda::balance

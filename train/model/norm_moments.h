// The moments of a batch: what batch norm needs to know of it, and how those of several batches become those of all.
// Pure.
#pragma once

#include <cstddef>
#include <span>

namespace remuda::train {

/// A batch's moments take so many numbers: how many values each channel has, the mean of each, and the sum of the
/// squares of its differences from that mean.
constexpr size_t moments_size(size_t channels) { return 1 + 2 * channels; }

/// Of all batches together, from those of each, which stand one after the other in `parts`; batches without values
/// count for nothing. In their order: the same bits from the same parts (Chan, Golub and LeVeque 1979, "Updating
/// Formulae and a Pairwise Algorithm for Computing Sample Variances"), and no digits are lost where means are large.
void combine_moments(std::span<const double> parts, std::span<double> all);

}  // namespace remuda::train

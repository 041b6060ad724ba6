// StepTail: what ranks report to each other about a step, in addition to its gradients.
//
// It follows the gradients in the step's last bucket and is reduced with them, so that an uneven batch, a failed or
// leaving rank, the times and new shares need no collective call of their own, and every rank makes the same decision
// from the same bits. The sum acts as a gather, as each rank fills its own slot and leaves the others zero.
//
// Layout, in elements of the gradient's type, for N ranks:
//   weight high, weight low, loss sum, then N slots each of: status, compute seconds, wait seconds, next share.
// A weight is split so that sums stay exact in float32: low = weight mod 4096, high = the rest / 4096; exact for totals
// below 2^36 in at most 4096 ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace remuda::train {

/// Why a step must not be applied, or the run must end. Bits.
enum StepStatus : unsigned {
  kOverflow = 1,        ///< a loss or gradient is not finite: no rank applies the step
  kOutOfMemory = 2,     ///< the step is repeated with new shares
  kLeaving = 4,         ///< the step is applied, and is the last
  kReadyTwice = 8,      ///< gradients came twice in one step: the sums are wrong, and the run ends
  kGradientMoved = 16,  ///< a gradient is no longer part of the flat one: likewise
};

struct StepTail {
  explicit StepTail(int ranks) : status(ranks), compute_s(ranks), wait_s(ranks), next_shares(ranks) {}

  double weight = 0;  ///< loss units
  double loss_sum = 0;
  std::vector<unsigned> status;
  std::vector<double> compute_s, wait_s;  ///< of the step before
  std::vector<int> next_shares;           ///< from rank 0, for the step after

  static size_t elements(int ranks) { return 3 + 4 * size_t(ranks); }
  /// The status bits of all ranks, combined.
  unsigned any_status() const;
  /// The first rank with that bit, or -1.
  int first_with(StepStatus bit) const;
};

template <typename T>
void write(const StepTail& tail, std::span<T> out);
template <typename T>
StepTail read(std::span<const T> in, int ranks);

}  // namespace remuda::train

// StepReport: what a rank reports to the others about a step, in addition to its gradients.
//
// The ranks exchange their reports once all gradients of the step are added up, in one small round. So an uneven batch,
// a failed or leaving rank, the norm of the gradient, the times and new shares need no collective calls of their own,
// and every rank makes the same decision from the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"

namespace remuda::train {

/// Why a step must not be applied, or the run must end, and what else all ranks do after it. Bits.
enum StepStatus : unsigned {
  kOutOfMemory = 1,    ///< the step is repeated, in smaller pieces or with new shares
  kLeaving = 2,        ///< the step is applied, and is the last
  kReadyTwice = 4,     ///< gradients came twice in one step: the sums are wrong, and the run ends
  kGradientMoved = 8,  ///< a gradient is no longer part of the flat one: likewise
  kNoBackward = 16,    ///< losses were reported, and no gradient of them came: likewise
  kCheckpoint = 32,    ///< of rank 0: after this step the state is kept
  kStored = 64,        ///< this rank's part of the state that is being kept is on the disk, or could not be put there
  kJoining = 128,      ///< of rank 0: after this step a rank that waits may join
  kDetached = 256,     ///< losses were reported that depend on no parameter: the run ends
  kMeanLoss = 512,     ///< a loss is a mean over losses, in place of their sum: likewise
  kMoving = 1024,      ///< of rank 0: after this step parts of the state get other owners
};

/// Of one rank.
struct StepReport {
  double weight = 0;  ///< loss units of its part of the batch
  double loss_sum = 0;
  double square_norm = 0;  ///< of the part of the summed gradient that it owns; not finite when an element is not
  unsigned status = 0;
  double compute_s = 0, wait_s = 0;  ///< of the step before
  double data_s = 0, update_s = 0;   ///< of that compute_s: waiting for samples, and the update
  double gradient_wait_s = 0;        ///< of that wait_s: until the gradients were added up
  double memory_bytes = 0;           ///< in tensors at most, in the step before; 0: not known
  std::vector<int> next_shares;      ///< rank 0 only: for the step after
  std::vector<char> used;            ///< parameters that its losses depend on: those with a gradient; as many on all
  /// Must be the same on all ranks; 0 where a program does not say it.
  double global_batch = 0, learning_rate = 0;
};

/// Of all ranks; the same on every rank.
struct StepTotals {
  double weight = 0;
  double loss_sum = 0;
  double square_norm = 0;  ///< of the whole summed gradient
  std::vector<unsigned> status;
  std::vector<double> compute_s, wait_s, data_s, update_s, gradient_wait_s, memory_bytes;
  std::vector<int> next_shares;
  std::vector<char> used;  ///< by any rank

  /// The status bits of all ranks, combined.
  unsigned any_status() const;
  /// The first rank with that bit, or -1.
  int first_with(StepStatus bit) const;
};

/// Collective. Sums are in rank order. What must be the same and differs is a usage error, on all ranks.
Result<StepTotals> exchange(comm::Communicator& communicator, const StepReport& mine);

}  // namespace remuda::train

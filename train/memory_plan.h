// MemoryPlan: what a step takes of each device's memory, and in how many pieces a rank computes its part so that it
// fits.
//
// The most that a step takes grows with the samples of a piece as a line does (activations are kept for each), which
// two batch sizes determine. All ranks have the same plan, and decide the same by it. Pure.
#pragma once

#include <map>
#include <optional>
#include <vector>

namespace remuda::train {

/// Of one rank, in bytes.
struct MemoryNeed {
  double known = 0;       ///< 1 where it was measured; else all is 0
  double held = 0;        ///< before a step: parameters, gradients, the optimizer's state, buffers
  double fixed = 0;       ///< what a step takes besides, whatever its samples
  double per_sample = 0;  ///< and for each sample of a piece
  double least = 0;       ///< what the smallest piece that was measured takes besides `held`
  double room = 0;        ///< that tensors may take in all; 0: not known

  /// The most in use during a step in pieces of so many samples.
  double peak(int samples) const;
};

/// The line through what steps of some sizes took besides what was held: samples of a piece -> bytes. Between the sizes
/// it is through, which are the largest and the third largest, no step takes more: the peak is the largest of several
/// lines, one for each moment of the step.
MemoryNeed fit_memory(const std::map<int, double>& taken);

class MemoryPlan {
 public:
  /// Parts are computed in `pieces` at least; or, where `micro_batch` is not 0, in pieces of so many samples, which
  /// nothing changes.
  MemoryPlan(int ranks, int pieces, int micro_batch = 0)
      : needs_(size_t(ranks)), pieces_(size_t(ranks), pieces), micro_batch_(micro_batch) {}
  /// From now on no piece has fewer samples, as the model takes no fewer.
  void set_least(int samples) { least_ = samples; }

  /// Of all ranks, once they are measured.
  void take(std::vector<MemoryNeed> needs) { needs_ = std::move(needs); }
  const std::vector<MemoryNeed>& needs() const { return needs_; }

  /// In how many pieces the rank computes a part of so many samples: as many as it has to, by its need.
  int pieces(int rank, int samples) const;
  /// The rank ran out of memory with such a part: from now on it computes it in twice as many pieces. False, and
  /// nothing changes, where these have as few samples as may be already, or are micro-batches.
  bool cut(int rank, int samples);
  /// The most in use during a step with such a part; nothing where that was not measured.
  std::optional<double> peak(int rank, int samples) const;
  /// Whether all parts fit in as few pieces as may be.
  bool fits(const std::vector<int>& parts) const;

 private:
  int largest_piece(int samples, int pieces) const;
  int most_pieces(int samples) const { return samples / least_ > 1 ? samples / least_ : 1; }
  bool fits(int rank, int samples, int pieces) const;

  std::vector<MemoryNeed> needs_;
  std::vector<int> pieces_;  ///< at least
  int micro_batch_;
  int least_ = 1;
};

}  // namespace remuda::train

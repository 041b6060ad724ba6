// Parts: which samples of each batch are whose, in fixed proportions or by measured speed, and who owns which part of
// the optimizer's state.
//
// Rank 0 decides (balance::Balancer, balance::StateMoves); its decision comes to all with the reports of a step.
// Samples hold from the next step on; state moves after the step, by a call that all ranks make.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "balance/balancer.h"
#include "balance/state_moves.h"
#include "base/result.h"
#include "parallel/parallel.h"
#include "train/step_report.h"

namespace remuda::parallel {

/// The proportions that a launcher gives, as in "0.75,0.25": one per rank. Even where it gives none, or not for this
/// many ranks, as where they are on several hosts; text that is no such list is a usage error.
Result<std::vector<double>> launchers_shares(const std::string& text, int ranks);

class Parts {
 public:
  /// `fixed`: proportions, one per rank; empty: by speed. Parts are whole numbers of `micro_batch` samples, except for
  /// the last one.
  Parts(int rank, int ranks, std::vector<double> fixed, int64_t micro_batch = 1);

  /// This rank's part of the next batch. The first batch is the usual one; others are split in the same proportions.
  Part next(int64_t batch);

  /// What next() would give, once it has been called.
  Part part_of(int64_t batch) const { return mine_of(split(batch), batch); }

  /// What this rank reports to the others with the step that begins.
  train::StepReport report(double weight);
  /// Seconds that this rank computed in the step under way; and those of its update.
  void computed(double seconds) { compute_s_ += seconds; }
  void updated(double seconds) { compute_s_ += seconds, update_s_ = seconds; }
  void waited(double seconds) { wait_s_ += seconds; }
  /// Bytes of this rank's device that are in use in this step, by whom ever.
  void needed(double bytes) { memory_bytes_ = bytes; }

  /// From the reports of all ranks.
  void learn(const train::StepTotals& totals);
  /// Rank 0, for a rank that ran out of memory: smaller parts for it, if there can be any. The result holds for all
  /// ranks, which take() it.
  std::vector<int> shrink(int rank);
  void take(std::vector<int> shares);

  /// Rank 0: from now on state goes where it is updated faster.
  void move_state(std::vector<balance::StateOwner> owners, const balance::StateBytes& bytes, std::vector<double> parts);
  /// Rank 0, after a step whose reports have said that state moves: the parts that ranks are to own.
  std::vector<double> next_state() { return std::exchange(next_state_, {}); }
  /// They could not be had: state stays where it is.
  void keep_state() { moves_.reset(); }

  int steps() const { return steps_; }
  bool in_use() const { return balancer_.has_value(); }

 private:
  balance::BalanceOptions options(int units) const;
  /// How many micro-batches a batch has, and those of each rank.
  int units_of(int64_t batch) const { return int((batch + micro_batch_ - 1) / micro_batch_); }
  std::vector<int> split(int64_t batch) const;
  Part mine_of(const std::vector<int>& parts, int64_t batch) const;

  const int rank_, ranks_;
  const std::vector<double> fixed_;
  const int64_t micro_batch_;
  std::optional<balance::Balancer> balancer_;
  std::vector<int> shares_;      ///< in force, in micro-batches, as the two below
  std::vector<int> parts_;       ///< of the step under way
  std::vector<int> last_parts_;  ///< of the step before, whose times come with the next reports
  std::optional<balance::StateMoves> moves_;
  std::vector<double> next_state_;  ///< empty: it stays
  double compute_s_ = 0, update_s_ = 0, wait_s_ = 0, memory_bytes_ = 0;
  int64_t batch_ = 0;  ///< of the step under way; 0 where next() was not called for it
  int steps_ = 0;
};

}  // namespace remuda::parallel

// Participants: which devices take part in steps, and which part of the state each owns, by what steps really took.
//
// split.h predicts a step from what devices did alone. That they slow each other down, as they share memory, links and
// those who wait, only shows in steps. So this is a search by optimism (as UCB: Auer et al. 2002, Machine Learning 47):
// a set of devices counts as its steps took where it was tried, and else as it is predicted. The set that counts least
// is in force, for kTrialSteps at least. As no prediction of a subset is slower than what it takes, no subset is missed
// for long; one that has disappointed is tried again after ever more steps, in which the trials take kTrialCost.
//
// Within a set, state moves where the law predicts a step shorter by kWorthMoving, by the updates that were measured.
// Pure: no clock, no IO; the same calls give the same decisions. One thread at a time.
#pragma once

#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "balance/split.h"
#include "balance/update_times.h"

namespace remuda::balance {

struct ParticipantsOptions {
  std::vector<SplitDevice> devices;  ///< as they were measured alone
  SplitTask task;                    ///< with `state_given` where parts of the state stay as they are
  std::vector<double> state;         ///< parts that devices own now
  std::vector<std::string> names;    ///< of devices
};

/// What a step was like.
struct StepSeen {
  std::vector<int> shares;
  std::vector<double> update_s;  ///< of what each owns
  double seconds = 0;            ///< in all
};

/// What is to be from now on.
struct ParticipantsChange {
  std::vector<bool> takes_part;
  std::vector<double> state;  ///< parts; as they are where the task gives them
  double gain = 0;            ///< fraction of the step time that this is to save
  std::string reason;         ///< one sentence for people
};

/// A device that takes no part.
struct LeftOut {
  size_t device = 0;
  double with_s = 0, without_s = 0;  ///< what a step took with it, or is predicted to take, and what it takes now
  bool was_tried = false;            ///< with it
};

class Participants {
 public:
  explicit Participants(ParticipantsOptions options);

  /// After each step. Who takes part, and owns what, changes after it.
  std::optional<ParticipantsChange> observe(const StepSeen& step);
  /// `state` was not moved as a change says: it stays as it is from now on.
  void keep_state(std::vector<double> state);
  /// State has been moved, which took so long: what a trial of a set costs, besides slower steps.
  void took_move(double seconds) { move_s_ = seconds; }
  /// A device can take no more samples than that, and these take part now (Balancer::limit()).
  void limit(size_t device, int most, const std::vector<bool>& takes_part);

  std::vector<LeftOut> left_out() const;

 private:
  using Set = std::vector<bool>;
  std::vector<Set> sets() const;
  std::optional<Split> predict(const Set& set) const;
  double counts(const Set& set) const;
  const Set* clearly_better() const;
  void take(const StepSeen& step);
  void retry_where_due(double now_s);
  ParticipantsChange change_to(const Set& set, double now_s);
  std::optional<ParticipantsChange> move_state(double now_s);

  ParticipantsOptions options_;
  std::map<Set, std::optional<Split>> predicted_;
  std::map<Set, double> tried_;  ///< seconds of a step
  Set now_;
  std::vector<int> shares_;              ///< of the last step
  std::deque<double> steps_s_;           ///< since the last change of shares or state
  UpdateTimes updates_;                  ///< likewise of state
  int since_change_ = 0, settling_ = 0;  ///< steps since the set or the state has changed; that are not looked at
  int since_trial_ = 0;                  ///< steps
  double shortest_s_ = INFINITY;         ///< step since the set or the state has changed
  double move_s_ = 0;                    ///< of the last move of state
  MovePace pace_;                        ///< of moves within a set
  double began_s_ = 0;                   ///< what steps took when the set was new; 0: not known yet
  double retry_after_ = 0;               ///< such steps, until a set is tried again,
  double shift_after_ = kSoonest;        ///< and until another speed of all steps makes all sets new
  static constexpr double kSoonest = 32;
};

}  // namespace remuda::balance

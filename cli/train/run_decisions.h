// RunDecisions: what a run whose ranks have changed decided on its shares, and kept of itself, from its start.
//
// The ranks that are left know only what happened since the last loss, as whoever decided before may be lost. The
// launcher has heard all of it. Pure.
#pragma once

#include "base/json.h"

namespace remuda::cli {

class RunDecisions {
 public:
  /// An event of a rank (workers/event.h).
  void take(const Json& event);
  /// Ranks were lost; what is decided next is the first split of those that are left.
  void take_loss();
  /// The ranks have changed, as an event of theirs says, `left` or `joined`. Where one has joined, the last decision
  /// was their first split.
  void take_change(const Json& event);
  /// Gives the report of a run whose ranks have changed all decisions, and the numbers of changes and of checkpoints.
  void complete(Json& report) const;

 private:
  Json decisions_ = Json::array();
  size_t since_loss_ = 0;  ///< the first of them after the last loss
  size_t splits_ = 0;      ///< of them, first splits
  bool splits_next_ = true;
  int written_ = 0, failed_ = 0;  ///< checkpoints
};

}  // namespace remuda::cli

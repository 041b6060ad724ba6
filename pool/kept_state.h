// KeptState: the state of a pool as its file has it, and the same again for transitions to work on: so a change copies
// and writes what it changes, not all that waits. Internal to pool.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/state.h"

namespace remuda::pool {

class KeptState {
 public:
  const PoolState& state() const { return before_; }
  /// For a transition, which adds jobs at the end, and loses none. Then accept() or undo() is called.
  PoolState& draft() { return after_; }

  void set(PoolState state);
  /// Ended jobs that a transition needs, too; until forget_ended().
  void add(const std::vector<Job>& jobs);

  /// The jobs that differ in the draft, after their texts were cleaned; ascending. Looks at those that were touched.
  std::vector<int64_t> clean_changed();
  bool differs_beside_jobs() const;

  /// Whether one of these jobs waits for another that is not here: it has come back into the queue.
  bool lacks_awaited(const std::vector<int64_t>& changed) const;

  /// The draft becomes the state; `changed` are the jobs that differ.
  void accept(const std::vector<int64_t>& changed);
  /// The state becomes the draft.
  void undo();

  /// Takes the ended jobs out that no waiting job names, of those that were added, have changed or were named by these.
  void forget_ended(std::vector<int64_t> candidates);

 private:
  void forget_touched();

  PoolState before_, after_;
};

}  // namespace remuda::pool

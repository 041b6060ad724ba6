// The jobs of an array, and the state of each index.
#pragma once

#include <string>
#include <vector>

#include "pool/access.h"

namespace remuda::cli {

/// With ended ones, as far as the pool keeps them; by index. Without the job that stands for the array.
Result<std::vector<pool::Job>> jobs_of_array(pool::Access& pool, int64_t array);

/// The indices of an array by their state, each list ascending.
struct ArrayStates {
  std::vector<int> done, failed, cancelled, running, waiting;
  std::vector<int> not_started;  ///< they have no job: their turn has not come yet, or the array ended before it

  /// The indices that `remuda rerun` runs again once the array has ended.
  std::vector<int> not_done() const;
};

/// `jobs` are those of the array. For an array whose indices are not in its record, only those that had a job are
/// known.
ArrayStates array_states(const pool::Job& array, const std::vector<pool::Job>& jobs);

/// "8 done, 2 running, 10 waiting"; with "; paused" where those do not start.
std::string states_text(const pool::Job& array, const ArrayStates& states);

}  // namespace remuda::cli

// Patience: what a command does that looks at a pool until something is so, while that cannot be read: an agent that is
// started anew, as by an upgrade, is there again soon.
#pragma once

#include "base/result.h"
#include "pool/access.h"

namespace remuda::cli {

/// One thread. Begins when it is made.
class Patience {
 public:
  Patience();
  /// After each look. Pauses where it failed, `most_s` at the most. The look's error where looking again cannot help,
  /// or none has succeeded for half a minute.
  Result<void> after(const Result<void>& look, const pool::Access& pool, double most_s);

 private:
  double seen_s_;  ///< when a look succeeded last, on the steady clock
};

}  // namespace remuda::cli

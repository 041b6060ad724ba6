// Terminal: the terminal on which a process was started: whether it is open, and which process group is in its
// foreground.
#pragma once

#include <vector>

#include "base/file.h"
#include "process/process_id.h"

namespace remuda::process {

/// Empty for a process that has none, and for one that ignores its end (nohup).
class Terminal {
 public:
  static Terminal of_caller();

  /// Readable, in the sense of poll, once it was closed; -1: there is none.
  int closing() const { return closing_.get(); }
  bool is_closed() const;

  /// Makes `group` its foreground process group, so that Ctrl-C reaches it, where the current one is gone or is that of
  /// one of `processes`.
  void give_to(int group, const std::vector<ProcessId>& processes) const;

 private:
  Fd terminal_, closing_;
};

}  // namespace remuda::process

// Terminal: the one that a process was started at: whether it is open, and who is in its foreground.
#pragma once

#include <vector>

#include "base/file.h"
#include "process/process_id.h"

namespace remuda::process {

/// Empty for a process that has none, and for one that does not hear of its end (nohup).
class Terminal {
 public:
  static Terminal of_caller();

  /// Readable, in the sense of poll, once it was closed; -1: there is none.
  int closing() const { return closing_.get(); }
  bool is_closed() const;

  /// Makes `group` its foreground, so that Ctrl-C reaches that group, where the foreground is a group that is gone or
  /// that of one of `processes`.
  void give_to(int group, const std::vector<ProcessId>& processes) const;

 private:
  Fd terminal_, closing_;
};

}  // namespace remuda::process

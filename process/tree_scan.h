// TreeScan: a look at all processes of the machine, a piece at a time, for a thread that has other work meanwhile. What
// all_descendants() of tree.h reads at once takes 10 us and more for each process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "process/process_id.h"

namespace remuda::process {

class TreeScan {
 public:
  TreeScan();

  /// Looks at no more than `most` processes, and returns true once all were looked at.
  bool advance(size_t most);
  /// Not all were looked at, as /proc could not be read.
  bool has_failed() const { return static_cast<bool>(error_); }
  /// Those of `roots` that are there, their children, theirs, and so on. Zombies do not count.
  std::vector<ProcessId> family_of(const std::vector<ProcessId>& roots) const;

 private:
  std::error_code error_;
  std::filesystem::directory_iterator next_;
  std::map<int, ProcessId> running_;
  std::multimap<int, int> children_;
};

}  // namespace remuda::process

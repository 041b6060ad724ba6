// PartitionIntent: the change of a GPU's partitions that is going on, in a file beside the marks (partition_marks.h).
// It is written before the driver is asked, and goes once the marks are right. So whoever comes after a process that
// was killed meanwhile knows what may be half done. One process at a time changes partitions of a GPU: the one that has
// its lock. Each GPU has its own, so that one which cannot be settled holds up no other.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/partition_plan.h"
#include "base/file.h"
#include "base/result.h"

namespace remuda::agent {

struct PartitionIntent {
  PartitionChange change;
  std::set<unsigned> before;         ///< of making one: numbers of the instances that the GPU had
  std::optional<unsigned> instance;  ///< of taking one away: its number

  /// Whether the instance of that number can be what the change has left.
  bool concerns(unsigned number) const {
    return change.what == PartitionChange::What::make ? !before.contains(number) : number == instance;
  }
};

/// Until the descriptor is closed, this process alone changes partitions of the GPU; an error where another one does.
/// Makes the folder.
Result<Fd> lock_partitions(const std::string& folder, const std::string& gpu);

/// For the process that has the GPU's lock.
Result<void> write_intent(const std::string& folder, const PartitionIntent& intent);
/// Nothing where none was written since the machine was started: that has removed all partitions.
std::optional<PartitionIntent> read_intent(const std::string& folder, const std::string& gpu);
void forget_intent(const std::string& folder, const std::string& gpu);

struct LeftChange {
  PartitionChange change;
  bool is_at_work = false;  ///< a process has the GPU's lock
};
/// The changes that have begun and are not ended.
std::vector<LeftChange> left_changes(const std::string& folder);

}  // namespace remuda::agent

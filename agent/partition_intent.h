// PartitionIntent: the change of partitions that is going on, in a file beside the marks (partition_marks.h). It is
// written before the driver is asked, and goes once the marks are right. So whoever comes after a process that was
// killed meanwhile knows what may be half done. One process at a time changes partitions: the one that has the folder's
// lock.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "agent/partition_plan.h"
#include "base/file.h"
#include "base/result.h"

namespace remuda::agent {

struct PartitionIntent {
  PartitionChange change;
  std::set<unsigned> before;  ///< numbers of the GPU's instances that are none of its business
};

/// Until the descriptor is closed, this process alone changes partitions; an error where another one does. Makes the
/// folder.
Result<Fd> lock_partitions(const std::string& folder);
/// Whether a process has the lock.
bool are_partitions_locked(const std::string& folder);

Result<void> write_intent(const std::string& folder, const PartitionIntent& intent);
/// Nothing where none was written since the machine was started: that has removed all partitions.
std::optional<PartitionIntent> read_intent(const std::string& folder);
void forget_intent(const std::string& folder);

}  // namespace remuda::agent

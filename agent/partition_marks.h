// Which partitions of GPUs an agent has made: a small file for each in a folder of the pool. It is written by the
// process that has made the partition, as soon as that is there, and counts until the machine is started anew: then
// there is no partition. So an agent that follows one which was killed never takes another's for its own.
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace remuda::agent {

Result<void> mark_partition(const std::string& folder, const std::string& uuid);
/// It was taken away.
void unmark_partition(const std::string& folder, const std::string& uuid);
/// The same, where the mark is so old that every reading since would have shown the partition.
void unmark_lost_partition(const std::string& folder, const std::string& uuid);
/// The UUIDs of those that were made since the machine was started.
std::set<std::string> marked_partitions(const std::string& folder);

}  // namespace remuda::agent

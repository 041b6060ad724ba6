// Which device files processes have open, as /proc shows their tables of descriptors.
//
// No file system is asked about what it has open: one in user space answers when it likes, or never. Seen are the
// tables of a process and of those of its threads that have one for themselves, as the kernel reports by kcmp(2). Not
// seen, as /proc does not show them: a descriptor on its way through a socket, a file that io_uring has registered, and
// a mapping that has outlived its descriptor.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "confine/device_nodes.h"
#include "process/process_id.h"

namespace remuda::confine {

/// How many descriptors and threads are looked at for one question: users make them by the million. A look takes 4 us:
/// 20,000 descriptors of one process, measured on Linux 6.18.
inline constexpr size_t kMostLooks = 20000;

/// Those of `nodes` (ascending) that the process with this folder of /proc has open. A file that is opened only to be
/// pointed at (O_PATH) does not count: that takes no right. Lowers `looks` by one for each descriptor and each thread;
/// where it is 0 afterwards, there may be more.
std::set<DeviceNode> open_nodes(const std::string& process, const std::vector<DeviceNode>& nodes, size_t& looks);

/// Whether a process has one of these open, or so much that `most` looks cannot show it.
bool has_open(const process::ProcessId& process, const std::vector<DeviceNode>& nodes, size_t most = kMostLooks);

/// An error (usage) where one of these processes, the first and what has descended from it, has one of the nodes open,
/// or together they have so much that this cannot be seen.
Result<void> check_unopened(const std::vector<process::ProcessId>& family, const std::vector<DeviceNode>& nodes);

}  // namespace remuda::confine

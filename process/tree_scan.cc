#include "process/tree_scan.h"

#include <set>
#include <utility>

#include "base/number.h"
#include "process/stat.h"

namespace remuda::process {

TreeScan::TreeScan() : next_("/proc", error_) {}

bool TreeScan::advance(size_t most) {
  const ProcessId own = own_process_id();
  for (const std::filesystem::directory_iterator end; !error_ && next_ != end; next_.increment(error_)) {
    const auto pid = parse_number<int>(next_->path().filename().string());
    if (!pid) continue;
    if (most-- == 0) return false;
    const auto stat = process_stat(*pid);
    if (!stat) continue;
    children_.emplace(stat->parent, *pid);
    if (is_running(*stat)) running_[*pid] = {*pid, stat->start_ticks, own.boot_id, own.pid_namespace};
  }
  return true;
}

/// A number that was used again meanwhile can be above and below another one.
std::vector<ProcessId> TreeScan::family_of(const std::vector<ProcessId>& roots) const {
  std::vector<int> pids;
  std::set<int> known;
  for (const ProcessId& root : roots) {
    const auto there = running_.find(root.pid);
    const bool is_there = there != running_.end() && there->second.start_ticks == root.start_ticks &&
                          there->second.boot_id == root.boot_id && is_visible(root);
    if (is_there && known.insert(root.pid).second) pids.push_back(root.pid);
  }
  for (size_t next = 0; next < pids.size(); ++next) {
    const auto [first, last] = children_.equal_range(pids[next]);
    for (auto child = first; child != last; ++child)
      if (known.insert(child->second).second) pids.push_back(child->second);
  }
  std::vector<ProcessId> family;
  for (const int pid : pids)
    if (const auto there = running_.find(pid); there != running_.end()) family.push_back(there->second);
  return family;
}

}  // namespace remuda::process

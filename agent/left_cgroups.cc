#include "agent/left_cgroups.h"

#include "base/clock.h"
#include "confine/cgroup.h"

namespace remuda::agent {

LeftCgroups::~LeftCgroups() {
  constexpr double kPatience_s = 0.2;
  const double end_s = monotonic_s() + kPatience_s;
  for (const std::string& folder : folders_) confine::remove_cgroup(folder, end_s - monotonic_s());
}

void LeftCgroups::sweep() {
  std::erase_if(folders_, [](const std::string& folder) { return confine::remove_cgroup(folder); });
}

}  // namespace remuda::agent

#include "agent/left_cgroups.h"

#include <utility>

#include "agent/job_cgroup.h"
#include "base/clock.h"
#include "confine/cgroup.h"

namespace remuda::agent {

LeftCgroups::~LeftCgroups() {
  constexpr double kPatience_s = 0.2;
  const double end_s = monotonic_s() + kPatience_s;
  for (const std::string& folder : folders_) confine::remove_cgroup(folder, end_s - monotonic_s());
}

/// Whoever has it could keep it from being removed, by making others in it.
void LeftCgroups::add(std::string folder) {
  take_back(folder);
  folders_.push_back(std::move(folder));
}

/// Those of an agent that was killed may be their users' still.
void LeftCgroups::sweep() {
  std::erase_if(folders_, [](const std::string& folder) {
    if (confine::remove_cgroup(folder)) return true;
    take_back(folder);
    return false;
  });
}

}  // namespace remuda::agent

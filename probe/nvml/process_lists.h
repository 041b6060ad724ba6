// ProcessLists: the processes of each device, as what has changed of them since the reading before. Thousands of them
// are the same from one second to the next, so only the others go from the guarded child to its parent.
//
//   child:  const auto changes = lists.take(found.devices);   // which have no processes then
//   parent: if (!lists.put(changes, found.devices)) ...       // they have them again
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.h"

namespace remuda::probe::nvml {

/// A stretch of a list: of the entries before, so many stay, then so many go, and in their place others come.
struct Stretch {
  size_t stay = 0, go = 0;
  std::vector<Process> come;

  static constexpr const char* kName = "stretch";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("stay", self.stay, "entries that are as they were");
    visit("go", self.go, "entries after them that are gone, or another now");
    visit("come", self.come, "what is there in their place");
  }
  bool operator==(const Stretch&) const = default;
};

/// From the beginning of the lists to their ends; few where they are by pid.
std::vector<Stretch> changes(const std::vector<Process>& before, const std::vector<Process>& now);
/// Makes `list` what it was changed to; false, with nothing of use in it, where these are not the changes of that list.
bool change(std::vector<Process>& list, std::vector<Stretch> stretches);

/// One on each side, both new at the same time. One thread.
class ProcessLists {
 public:
  using Changes = std::vector<std::vector<Stretch>>;  ///< of each device, in their order

  Changes take(std::vector<Device>& devices);
  /// False where these are no changes of the lists before: nothing can be known of later ones, either.
  bool put(Changes changes, std::vector<Device>& devices);

 private:
  std::vector<std::vector<Process>> lists_;  ///< of the reading before; empty where a device had none
};

}  // namespace remuda::probe::nvml

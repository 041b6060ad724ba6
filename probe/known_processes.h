// KnownProcesses: processes described again and again, as once a second for thousands of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "device/device.h"

namespace remuda::probe {

/// What /proc says of a process changes with the process, which is another one when its pid is used again; when it
/// executes another program or gives itself a title; and with its owner. The first and the last are looked for every
/// ten seconds, as the system makes the folder /proc/PID anew for each process and shows the owner there; its command
/// is read anew every half a minute, the rest only where something of it is missing yet. A driver names those that use
/// a device now, and one that it has left out once is forgotten: so a process is taken for the one before only where it
/// has got its pid and the device between two readings, and for ten seconds. One thread.
class KnownProcesses {
 public:
  explicit KnownProcesses(std::string proc = "/proc", Clock& clock = steady_clock())
      : proc_(std::move(proc)), clock_(clock) {}

  /// As describe_process() (probe/process.h), its command of up to half a minute ago.
  const Process& describe(int pid);
  /// Forgets those that were not described since the last call of this.
  void forget_others();

 private:
  static constexpr double kLook_s = 10, kFresh_s = 30;
  using Folder = std::tuple<uint64_t, int64_t, int64_t, unsigned>;  ///< inode, time of its making (s, ns), owner
  struct Known {
    Folder folder;
    double seen_s = 0, read_s = 0;
    bool is_used = false, is_there = false;
    Process process;
  };
  const std::string proc_;
  Clock& clock_;
  std::map<int, Known> known_;  ///< by pid
};

}  // namespace remuda::probe

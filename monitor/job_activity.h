// JobActivity: what a job's processes do on the host, from one look at /proc to the next.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "monitor/idle_window.h"

namespace remuda::monitor {

/// One thread.
class JobActivity {
 public:
  /// `proc`: where the system shows what processes have read.
  explicit JobActivity(std::string proc = "/proc") : proc_(std::move(proc)) {}

  /// Sets `cores`, `waits_for_input` and `hides_input`; the first time, and where no process can be seen, `cores` stays
  /// unknown. `now_s` is a steady time. Two reads of /proc for each process.
  void look(double now_s, std::span<const int> pids, Seen& seen);

 private:
  struct Used {
    int64_t ticks = 0, bytes = 0;
  };
  std::string proc_;
  std::map<std::pair<int, int64_t>, Used> before_;  ///< by pid and start
  double before_s_ = -1;
};

}  // namespace remuda::monitor

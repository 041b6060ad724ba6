// IdleWindow: what a job did with its devices over the last so many seconds, or a device did, and why it idles. Pure.
//
// A job is idle when a kernel ran for next to nothing of the whole window: so one that works briefly and sleeps again
// is idle, too, and one that has just begun is not. What is not known is not idle.
#pragma once

#include <array>
#include <cstdint>

#include "device/words.h"

namespace remuda::monitor {

/// One reading.
struct Seen {
  double busy = -1;              ///< share of time in which a kernel ran; negative: unknown
  int processes = -1;            ///< that use the devices; negative: unknown
  double cores = -1;             ///< of the host, that its processes used lately; negative: unknown
  bool waits_for_input = false;  ///< a process of it is in an uninterruptible wait, or reads much
  bool hides_input = false;      ///< what a process of it reads may not be seen
  bool misses_some = false;      ///< not all its processes were looked at
  bool waits_for_peer = false;   ///< it waits for another rank of its run, as far as the run reports it
};

enum class IdleReason {
  unknown,
  no_process,      ///< none uses the devices
  asleep,          ///< all its processes do nothing
  not_seen,        ///< they do not compute on the host; what they read may not be seen
  waits_for_data,  ///< they compute on the host, or read
  waits_for_peer,
};

/// One thread.
class IdleWindow {
 public:
  explicit IdleWindow(double length_s) : length_s_(length_s) {}

  /// Times ascend, of any clock. After a gap, or where the clock was set back, the window begins anew.
  void add(double now_s, const Seen& seen);
  /// The device has come to somebody else, or to nobody.
  void clear() { since_s_ = -1; }

  /// Whether all of the window was watched.
  bool is_whole() const { return since_s_ >= 0 && last_s_ - since_s_ >= length_s_; }
  /// Share of the window in which a kernel ran; negative unless it is whole, and that is known of most of it.
  double busy() const;
  /// Why it idles, if it does.
  IdleReason reason() const;
  double length_s() const { return length_s_; }

 private:
  static constexpr size_t kParts = 30;
  struct Part {
    int64_t number = -1;  ///< since the clock's beginning
    double busy = 0, cores = 0;
    int readings = 0, busy_known = 0, cores_known = 0, processes_known = 0, with_processes = 0, input = 0, hidden = 0,
        missed = 0, peer = 0;
  };
  Part sum() const;

  double length_s_;
  std::array<Part, kParts> parts_;
  double since_s_ = -1, last_s_ = 0;
};

}  // namespace remuda::monitor

template <>
struct remuda::Words<remuda::monitor::IdleReason> {
  using R = monitor::IdleReason;
  static constexpr std::array table{std::pair{R::unknown, "unknown"},
                                    std::pair{R::no_process, "no process"},
                                    std::pair{R::asleep, "asleep"},
                                    std::pair{R::not_seen, "not seen"},
                                    std::pair{R::waits_for_data, "waits for data"},
                                    std::pair{R::waits_for_peer, "waits for a peer"}};
};

namespace remuda::monitor {

/// A clause for people: "all processes of the job sleep"; empty where it is not known.
const char* reason_text(IdleReason reason);

}  // namespace remuda::monitor

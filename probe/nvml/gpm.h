// Gpm: the profiling counters (Hopper and newer) of one GPU or GPU instance, as shares between two readings.
#pragma once

#include "device/device.h"
#include "probe/nvml/lib.h"

namespace remuda::probe::nvml {

class Gpm {
 public:
  /// `now_s`: monotonic. Sets sm_active, sm_occupancy, tensor_active and dram_active from the time since the last
  /// reading: missing in the first one, and in one less than kShortest after the last.
  void read(const Lib& lib, Handle gpu, unsigned instance, double now_s, Status& status);

  static constexpr double kShortest = 0.1;  ///< how often the library refreshes them, in seconds

 private:
  Reading<GpmRequest> measure(const Lib& lib, Handle gpu, unsigned instance, double now_s);

  GpmSample earlier_ = nullptr, later_ = nullptr;  ///< the library's, for the process's life
  double taken_s_ = -1;                            ///< of `earlier_`; negative = never
};

}  // namespace remuda::probe::nvml

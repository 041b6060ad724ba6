// XidWatch: the driver's codes of fatal errors (XID) of one GPU, since watching began.
#pragma once

#include <map>
#include <optional>

#include "device/reading.h"
#include "probe/nvml/lib.h"

namespace remuda::probe::nvml {

/// Each GPU has an event set of its own, so that a set that fails does not affect other GPUs.
class XidWatch {
 public:
  /// The first call begins watching; later ones take the events since then, without waiting. Returns the last code, 0 =
  /// none.
  Reading<int> read(const Lib& lib, Handle gpu);
  /// The last code that concerns one instance of the GPU, as of the last read().
  Reading<int> of_instance(unsigned instance) const;

 private:
  std::optional<Missing> begin(const Lib& lib, Handle gpu);
  std::optional<Missing> drain(const Lib& lib);

  EventSet events_ = nullptr;  ///< the library's, for the process's life
  bool watching_ = false;
  int last_ = 0, last_of_all_ = 0;       ///< the second: of those that concern the whole GPU
  std::map<unsigned, int> by_instance_;  ///< of those that came after last_of_all_
  Reading<int> answer_;
};

}  // namespace remuda::probe::nvml

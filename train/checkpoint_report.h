// CheckpointReport: what a run has kept of itself, and what that took.
#pragma once

#include <cstdint>
#include <string>

namespace remuda::train {

struct CheckpointReport {
  int written = 0, failed = 0;  ///< checkpoints, and those that could not be written
  int resumed_from = 0;         ///< the step after which the run went on; 0: it began anew
  bool balance_kept = false;    ///< it went on with what had been learned of its devices; else they were measured anew
  std::string why_no_last;      ///< why the last one that was tried could not be written; empty: it was
  uint64_t last_bytes = 0;      ///< that it takes
  uint64_t bytes = 0;           ///< of the last one that was written, in all its files
  double write_s = 0;           ///< which took so long, from the first copy until it was whole
  double background_s = 0;      ///< the same, of all those that were written while training went on
  double held_s = 0;            ///< in which training waited for these
  double load_s = 0;            ///< to find the one to go on from, read and compare all of it, and load it

  bool any() const { return written + failed + resumed_from > 0; }
};

}  // namespace remuda::train

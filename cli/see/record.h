// `remuda record`: the live machine as a file, for bug reports, tests, planning and replay.
#pragma once

#include "device/inventory.h"

namespace remuda::cli {

struct Privacy {
  bool serials = false;  ///< serial numbers stay in
  bool names = false;    ///< user names and command lines stay in
};

/// Takes out what the privacy does not allow; each such reading then says that it was left out.
void redact(Inventory& inventory, const Privacy& privacy);

/// Adds to a recording what a later look at the same machine saw. A device that is gone is lost from then on, one that
/// is new is not recorded.
void add_sample(Inventory& recording, const Inventory& later);

}  // namespace remuda::cli

// `remuda record`: the live machine as a file, for bug reports, tests, planning and replay.
#pragma once

#include "device/inventory.h"

namespace remuda::cli {

struct Privacy {
  bool serials = false;  ///< serial numbers stay in
  bool names = false;    ///< user names and command lines stay in
};

/// Removes what `privacy` does not allow; the reason of each such reading is that it was left out.
void redact(Inventory& inventory, const Privacy& privacy);

/// Adds a later reading of the same machine to a recording. A device that is gone is lost from then on, a new one is
/// not recorded.
void add_sample(Inventory& recording, const Inventory& later);

}  // namespace remuda::cli

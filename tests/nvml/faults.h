// The faults that the test library simulates: the value of REMUDA_TEST_NVML_FAULTS, entries separated by commas.
//
//   lost=N        asking for GPU N's handle answers "GPU is lost" (15)
//   denied=N      asking for GPU N's handle answers "no permission" (4)
//   hang=N        every call with GPU N's handle sleeps for ten minutes
//   crash=N       every call with GPU N's handle ends the process with a segmentation fault
//   no-init=CODE  starting the library fails with that code: 9 driver not loaded, 18 versions differ
//   mismatch      the same as no-init=18
//   slow-init=MS  starting the library takes that many milliseconds
//   die-at=N      the process is killed where a MIG instance was made and is no device yet (1), where it is one (2), or
//                 where one that is to go is no device any more (3)
//   stuck=N       where not 0, making a compute instance fails, and so does a process's first removal of an instance
//   taken=N       where not 0, an administrator makes the MIG instance that is asked for, so there is no room for it
//   xid=N:CODE    every new event set that watches GPU N delivers one XID event with that code
//
// An entry may be repeated. A driver that lacks symbols, or one with the other layout of the process struct, is another
// build of the library: see CMakeLists.txt.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "base/result.h"
#include "tests/nvml/abi.h"

namespace remuda::tests::nvml {

constexpr int kHalfMade = 1, kMade = 2, kHalfRemoved = 3;

struct Faults {
  std::set<int> lost, denied, hang, crash;
  std::map<int, int> xid;
  Code init = kSuccess;
  int slow_init_ms = 0;
  int die_at = 0;
  int stuck = 0;
  int taken = 0;
};

/// An empty text means no faults; an unknown entry is a usage error.
Result<Faults> parse_faults(std::string_view text);

}  // namespace remuda::tests::nvml

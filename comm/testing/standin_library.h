// Tests only: a libnccl.so.2 that plays the library between threads of one process, on the streams and the memory of
// whatever device the test has, and punishes what the library would punish.
//
// Its calls do not wait: one that is not asked about until it is taken never reaches its stream. Each call meets those
// of the other ranks in their streams; sums are made from the last rank to the first, and what is not a rank's own part
// is NaN afterwards. A program that links it has it loaded, so remuda finds it before any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace remuda::comm {

/// The device of the test: how work gets into a stream, and where memory of the device can be read.
struct StandinDevice {
  void (*enqueue)(void* stream, std::function<void()> task) = nullptr;
  void* (*memory)(void* pointer) = nullptr;
};

enum class LibraryFault {
  none,
  init_fails,  ///< it refuses to join the others
  init_hangs,  ///< it never joins them
  call_hangs,  ///< it never takes a call
  call_fails,  ///< it refuses one
  work_fails,  ///< it takes one, and reports an error of its work, which never ends
  work_hangs,  ///< it takes one, whose work never begins
  wrong_sum,   ///< it adds up wrongly
};

struct LibraryFaults {
  LibraryFault fault = LibraryFault::none;
  int rank = 0;            ///< of whom
  int after_calls = 0;     ///< so many go well first; wrong_sum: 0
  size_t least_bytes = 0;  ///< wrong_sum: of sums that are as long
};

/// For all ranks that join from now on.
void configure_standin_library(const StandinDevice& device, const LibraryFaults& faults = {});

/// What the library says its version is when this thread asks: 2.21.5, as 22105, unless set.
void set_standin_version(int version);

/// Calls of all ranks that have reached their streams so far.
int standin_library_calls();
/// Likewise, of scatters and gathers of parts of one size.
int standin_library_calls_of_all_parts();

/// Groups' members that are not aborted yet.
int standin_library_members();

}  // namespace remuda::comm

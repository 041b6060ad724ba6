// Tests only: a stand-in for an accelerator, which punishes what a GPU would punish.
//
// Four devices of libtorch's type XPU, for which Debian's libtorch has no kernels. Their memory is apart from the
// host's: the pointers that tensors have are moved out of the address space, so that reading them as memory of the host
// is a crash. It is full of NaN before it is written and after it is freed. Work is queued: each stream is a thread
// that does its tasks in order, after a delay if it is given one, or not before somebody waits for them. Copies and
// operations in place are queued; other operations wait for their own stream first, run on the calling thread, and
// queue the copy of what they return. A copy to the host
// leaves NaN there until it is done, unless copies from the host are under way, which may still read that memory.
// Streams know nothing of each other, except by events.
//
// Everything here may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace remuda::train::testing {

constexpr int kStandinDevices = 4;
constexpr int kComputeStream = 0;  ///< the default stream; any other one is for copies

/// Settings of one device, whose streams are idle. They hold until they are changed.
struct StandinSettings {
  size_t memory_cap = SIZE_MAX;      ///< in bytes; an allocation beyond it throws as on a full GPU
  bool tells_memory = false;         ///< its maker's library says how much there is: memory_cap
  int capability = 0;                ///< 10 x major + minor; 0: the library does not say
  bool refuses_to_register = false;  ///< memory of the host
  bool lazy_compute = false;         ///< the default stream does nothing that nobody waits for
  bool lazy_copies = false;          ///< nor do the others
  int pool = 1;                      ///< streams for copies that the pool has, which gives one after the other
  double random_delay_s = 0;         ///< before each task: up to so much, drawn with `seed`
  unsigned seed = 1;
};
void configure_standin(int device, const StandinSettings& settings);

/// Who waits for which stream.
enum class WaitKind {
  copies_for_compute,  ///< a copying stream waits for the default one
  compute_for_copies,  ///< the other way round
  copies_for_copies,   ///< one copying stream for another one
  host_for_copies,     ///< the host asks whether a copy is done
};

/// From now on: counts the waits of this kind, and ignores the one with number `ignored` (from 0; -1: none), as if the
/// program did not wait there; a stream that was to wait does what it is given at once, up to the next event. Returns
/// the number of waits since the last call for this kind.
int watch_waits(int device, WaitKind kind, int ignored);

/// Every call into the device fails from now on, or after so many more, as after a fatal error of a GPU; once more with
/// false: it works again.
void lose_standin(int device, bool lost = true, int after_calls = 0);

/// Whether all of this memory of the host is registered with the driver.
bool standin_pinned(const void* start, size_t bytes);
/// How much is, in all.
size_t standin_pinned_bytes();
/// The device that was the current one when the memory that begins here was registered; -1: it is not.
int standin_pinned_by(const void* start);

/// Of the calling thread: the names of the ranges that were pushed, and "end" for each that was popped.
std::vector<std::string>& standin_ranges();

/// How often the allocator was told to give back what it keeps.
int standin_caches_emptied();

/// Bytes in tensors on the device.
size_t standin_memory(int device);

}  // namespace remuda::train::testing

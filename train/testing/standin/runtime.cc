// What remuda looks up by name in the run-time library of a device's maker.
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

#include "train/testing/standin/standin.h"

namespace remuda::train::testing {
namespace {

constexpr int kInvalidValue = 1, kAlreadyRegistered = 712;  // as CUDA numbers them

/// Registered memory of the host.
struct Pinned {
  std::mutex mutex;
  std::map<const std::byte*, size_t> ranges;

  static Pinned& all() {
    static Pinned pinned;
    return pinned;
  }
  /// The one that holds the first of these bytes.
  auto find(const std::byte* start) {
    const auto after = ranges.upper_bound(start);
    if (after == ranges.begin()) return ranges.end();
    const auto before = std::prev(after);
    return start < before->first + before->second ? before : ranges.end();
  }
};

std::atomic<int> emptied = 0;

}  // namespace

int standin_caches_emptied() { return emptied; }

bool standin_pinned(const void* start, size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(start);
  const std::lock_guard lock(Pinned::all().mutex);
  const auto range = Pinned::all().find(first);
  return range != Pinned::all().ranges.end() && first + bytes <= range->first + range->second;
}

size_t standin_pinned_bytes() {
  const std::lock_guard lock(Pinned::all().mutex);
  size_t bytes = 0;
  for (const auto& [start, size] : Pinned::all().ranges) bytes += size;
  return bytes;
}

extern "C" {

int cudaHostRegister(void* start, size_t bytes, unsigned) {
  if (bytes == 0) return kInvalidValue;
  const auto* const first = static_cast<const std::byte*>(start);
  const std::lock_guard lock(Pinned::all().mutex);
  auto& ranges = Pinned::all().ranges;
  const auto next = ranges.lower_bound(first);
  if (Pinned::all().find(first) != ranges.end() || (next != ranges.end() && next->first < first + bytes))
    return kAlreadyRegistered;
  ranges.emplace(first, bytes);
  return 0;
}

int cudaHostUnregister(void* start) {
  const std::lock_guard lock(Pinned::all().mutex);
  return Pinned::all().ranges.erase(static_cast<const std::byte*>(start)) == 1 ? 0 : kInvalidValue;
}

int cudaGetLastError() { return 0; }

/// libtorch 1.13 exports the one of its allocator under this name.
void empty_standin_caches() __asm__("_ZN3c104cuda20CUDACachingAllocator10emptyCacheEv");
void empty_standin_caches() { ++emptied; }

}  // extern "C"

}  // namespace remuda::train::testing

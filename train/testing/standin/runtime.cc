// What remuda looks up by name in the run-time library of a device's maker.
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

#include "train/testing/standin/device.h"

namespace remuda::train::testing {
namespace {

constexpr int kInvalidValue = 1, kAlreadyRegistered = 712, kNotSupported = 801;  // as CUDA numbers them
constexpr int kMajor = 75, kMinor = 76;                                          // likewise, of attributes

/// Registered memory of the host.
struct Pinned {
  std::mutex mutex;
  std::map<const std::byte*, size_t> ranges;
  std::map<const std::byte*, int> by;  ///< the current device then

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

int standin_pinned_by(const void* start) {
  const std::lock_guard lock(Pinned::all().mutex);
  const auto found = Pinned::all().by.find(static_cast<const std::byte*>(start));
  return found == Pinned::all().by.end() ? -1 : found->second;
}

extern "C" {

int cudaHostRegister(void* start, size_t bytes, unsigned) {
  if (bytes == 0) return kInvalidValue;
  if (Device::get(current_device()).settings().refuses_to_register) return kNotSupported;
  const auto* const first = static_cast<const std::byte*>(start);
  const std::lock_guard lock(Pinned::all().mutex);
  auto& ranges = Pinned::all().ranges;
  const auto next = ranges.lower_bound(first);
  if (Pinned::all().find(first) != ranges.end() || (next != ranges.end() && next->first < first + bytes))
    return kAlreadyRegistered;
  ranges.emplace(first, bytes);
  Pinned::all().by[first] = current_device();
  return 0;
}

int cudaHostUnregister(void* start) {
  const std::lock_guard lock(Pinned::all().mutex);
  Pinned::all().by.erase(static_cast<const std::byte*>(start));
  return Pinned::all().ranges.erase(static_cast<const std::byte*>(start)) == 1 ? 0 : kInvalidValue;
}

int cudaGetLastError() { return 0; }

const char* cudaGetErrorString(int error) {
  return error == kNotSupported ? "operation not supported" : "another error";
}

int cudaMemGetInfo(size_t* free, size_t* total) {
  const Device& device = Device::get(current_device());
  if (!device.settings().tells_memory) return kNotSupported;
  *total = device.settings().memory_cap;
  *free = *total - device.used();
  return 0;
}

int cudaDeviceGetAttribute(int* value, int attribute, int index) {
  const int capability = Device::get(index).settings().capability;
  if (capability == 0) return kNotSupported;
  if (attribute == kMajor) *value = capability / 10;
  if (attribute == kMinor) *value = capability % 10;
  return 0;
}

/// libtorch 1.13 exports the one of its allocator under this name.
void empty_standin_caches() __asm__("_ZN3c104cuda20CUDACachingAllocator10emptyCacheEv");
void empty_standin_caches() { ++emptied; }

}  // extern "C"

}  // namespace remuda::train::testing

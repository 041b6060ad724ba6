// What libtorch's neutral interfaces lack, from the run-time library of the device's maker that libtorch has loaded.
//
// Nothing is linked or loaded here: functions are looked up by name in this process, and where there are none, a device
// is used without them.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::train {

/// Pins memory of the host for copies to and from devices, on behalf of the calling thread's current one. The error
/// says what refuses it.
Result<void> pin_host(std::span<std::byte> memory);
void unpin_host(std::span<std::byte> memory);

struct DeviceMemory {
  size_t free = 0, total = 0;  ///< in bytes; what a caching allocator has reserved is not free
};

/// Of the calling thread's current device.
std::optional<DeviceMemory> device_memory();
/// What makes the allocator of CUDA tensors, or ROCm's, give back what it keeps of freed memory; null where libtorch
/// does not export it, as since 2.0.
void (*cache_emptying())();

/// Whether libtorch has a kernel for attention on this type of device: CUDA's and ROCm's.
bool has_attention_kernel(c10::DeviceType device);

/// Where the device is on its host, by its maker's count.
struct DeviceAddress {
  std::string maker;    ///< the prefix of the functions that know it, "cuda" or "hip"
  std::string address;  ///< of PCI
};
std::optional<DeviceAddress> device_address(int index);

/// The handle that functions of the maker have for a stream of libtorch's, whose neutral interface tells it from 2.11
/// on; before, by the function of its library for this maker. Null: neither is there.
void* native_stream(const c10::impl::VirtualGuardImpl& guard, const c10::Stream& stream);

/// Where libraries of the makers lie that come with libtorch: its own folder, and the one beside it in a Python
/// environment.
std::vector<std::string> library_folders();

/// 10 x major + minor of a device's compute capability, where its maker has such numbers.
std::optional<int> device_capability(int index);

}  // namespace remuda::train

#include "train/device/vendor_runtime.h"

#include <dlfcn.h>
#include <string>

namespace remuda::train {
namespace {

/// The makers name their functions alike, up to the prefix.
template <typename Function>
Function* find(const std::string& name) {
  for (const char* prefix : {"cuda", "hip"})
    if (void* found = ::dlsym(RTLD_DEFAULT, (prefix + name).c_str())) return reinterpret_cast<Function*>(found);
  return nullptr;
}

/// An error stays with the thread until somebody asks for it; that would be the next kernel that libtorch starts, which
/// would then throw.
bool is_success(int error) {
  if (error == 0) return true;
  if (const auto forget = find<int()>("GetLastError")) forget();
  return false;
}

}  // namespace

bool pin_host(std::span<std::byte> memory) {
  const auto call = find<int(void*, size_t, unsigned)>("HostRegister");
  return call && is_success(call(memory.data(), memory.size(), 0));
}

void unpin_host(std::span<std::byte> memory) {
  if (const auto call = find<int(void*)>("HostUnregister")) is_success(call(memory.data()));
}

std::optional<DeviceMemory> device_memory() {
  DeviceMemory memory;
  const auto call = find<int(size_t*, size_t*)>("MemGetInfo");
  if (!call || !is_success(call(&memory.free, &memory.total))) return std::nullopt;
  return memory;
}

void (*cache_emptying())() {
  for (const char* name :
       {"_ZN3c104cuda20CUDACachingAllocator10emptyCacheEv", "_ZN3c103hip19HIPCachingAllocator10emptyCacheEv"})
    if (void* found = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<void (*)()>(found);
  return nullptr;
}

std::optional<int> device_capability() {
  constexpr int kMajor = 75, kMinor = 76;  // cudaDevAttrComputeCapabilityMajor and Minor
  using Function = int(int*, int, int);
  auto* const call = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  int major = 0, minor = 0;
  if (!call || !is_success(call(&major, kMajor, 0)) || !is_success(call(&minor, kMinor, 0))) return std::nullopt;
  return 10 * major + minor;
}

}  // namespace remuda::train

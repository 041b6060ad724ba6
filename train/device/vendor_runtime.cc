#include "train/device/vendor_runtime.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <torch/version.h>

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

Result<void> pin_host(std::span<std::byte> memory) {
  const auto call = find<int(void*, size_t, unsigned)>("HostRegister");
  if (!call) return failed("no library that libtorch has loaded has a function for it");
  const int error = call(memory.data(), memory.size(), 0);
  if (is_success(error)) return {};
  const auto text_of = find<const char*(int)>("GetErrorString");
  return failed(text_of ? fmt::format("{} (error {})", text_of(error), error) : fmt::format("error {}", error));
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

std::optional<DeviceAddress> device_address(int index) {
  for (const char* maker : {"cuda", "hip"}) {
    auto* const call = reinterpret_cast<int (*)(char*, int, int)>(
        ::dlsym(RTLD_DEFAULT, (std::string(maker) + "DeviceGetPCIBusId").c_str()));
    std::array<char, 32> address{};
    if (call && is_success(call(address.data(), int(address.size()), index)))
      return DeviceAddress{maker, address.data()};
  }
  return std::nullopt;
}

namespace {

template <typename Guard>
void* handle_of(const Guard& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.getStreamNativeHandle(stream); }) {
    return guard.getStreamNativeHandle(stream);
  } else {
    // c10::cuda::CUDAStream::stream(), or HIP's: a member of a class that holds a c10::Stream and nothing else.
    for (const char* name : {"_ZNK3c104cuda10CUDAStream6streamEv", "_ZNK3c103hip9HIPStream6streamEv"})
      if (void* found = ::dlsym(RTLD_DEFAULT, name))
        return reinterpret_cast<void* (*)(const c10::Stream*)>(found)(&stream);
    return nullptr;
  }
}

}  // namespace

void* native_stream(const c10::impl::VirtualGuardImpl& guard, const c10::Stream& stream) {
  return handle_of(guard, stream);
}

std::vector<std::string> library_folders() {
  Dl_info libtorch{};
  if (::dladdr(reinterpret_cast<const void*>(&c10::impl::getDeviceGuardImpl), &libtorch) == 0) return {};
  const std::filesystem::path own = std::filesystem::path(libtorch.dli_fname).parent_path();
  return {own.string(), (own / "../../nvidia/nccl/lib").lexically_normal().string()};
}

std::optional<int> device_capability(int index) {
  constexpr int kMajor = 75, kMinor = 76;  // cudaDevAttrComputeCapabilityMajor and Minor
  using Function = int(int*, int, int);
  auto* const call = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  int major = 0, minor = 0;
  if (!call || !is_success(call(&major, kMajor, index)) || !is_success(call(&minor, kMinor, index)))
    return std::nullopt;
  return 10 * major + minor;
}

bool has_attention_kernel(c10::DeviceType device) { return device == c10::DeviceType::CUDA; }  // the word for both

}  // namespace remuda::train

// MIG: whether a GPU is partitioned into instances, and which.
#include <charconv>

#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {
namespace {

constexpr unsigned kMostInstances = 7;

template <typename Body>
Code ask_instance(Handle handle, const void* out, Body body) {
  return ask(handle, out, [&](const Gpu& gpu) { return gpu.parent ? body(gpu) : kNotSupported; });
}

Code give_attributes(Handle handle, Attributes* attributes) {
  return ask_instance(handle, attributes, [&](const Gpu& instance) {
    const Slices slices = slices_of(instance.device.profile.value_or(""));
    const int64_t memory = instance.device.memory_bytes.value_or(0);
    *attributes = {};
    attributes->multiprocessors = static_cast<unsigned>(instance.device.multiprocessors.value_or(0));
    attributes->gpu_slices = slices.gpu;
    attributes->compute_slices = slices.compute;
    attributes->memory_mb = static_cast<unsigned long long>(memory) >> 20;
    return kSuccess;
  });
}

}  // namespace

Slices slices_of(const std::string& profile) {
  Slices slices;
  const char* end = profile.data() + profile.size();
  unsigned number = 0;
  auto [unit, error] = std::from_chars(profile.data(), end, number);
  if (error != std::errc{} || unit == end) return slices;
  slices = {number, number};
  if (*unit == 'c' && end - unit > 2) std::from_chars(unit + 2, end, slices.gpu);
  return slices;
}

NVML_EXPORT Code nvmlDeviceGetMigMode(Handle handle, unsigned* current, unsigned* pending) {
  return ask(handle, all(current, pending), [&](const Gpu& gpu) {
    const Code code = give(gpu.device.partitioned, current);
    if (code == kSuccess) *pending = *current;
    return code;
  });
}

NVML_EXPORT Code nvmlDeviceIsMigDeviceHandle(Handle handle, unsigned* is_instance) {
  return ask(handle, is_instance, [&](const Gpu& gpu) {
    *is_instance = gpu.parent ? 1 : 0;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetMaxMigDeviceCount(Handle handle, unsigned* count) {
  return ask(handle, count, [&](const Gpu& gpu) {
    *count = gpu.device.partitioned.has_value() ? kMostInstances : 0;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, unsigned index, Handle* instance) {
  return ask(handle, static_cast<const void*>(instance), [&](const Gpu& gpu) {
    if (!gpu.device.partitioned.has_value()) return kNotSupported;
    if (index >= kMostInstances) return kInvalidArgument;
    for (const auto& one : gpu.instances)
      if (!one->is_empty() && index-- == 0) return *instance = one.get(), kSuccess;
    return kNotFound;
  });
}

NVML_EXPORT Code nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle handle, Handle* parent) {
  return ask_instance(handle, static_cast<const void*>(parent), [&](const Gpu& instance) {
    *parent = instance.parent;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetGpuInstanceId(Handle handle, unsigned* id) {
  return ask_instance(handle, id, [&](const Gpu& instance) {
    *id = instance.gpu_instance;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetComputeInstanceId(Handle handle, unsigned* id) {
  return ask_instance(handle, id, [&](const Gpu& instance) {
    *id = instance.compute_instance;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetAttributes(Handle handle, Attributes* attributes) {
  return give_attributes(handle, attributes);
}

NVML_EXPORT Code nvmlDeviceGetAttributes_v2(Handle handle, Attributes* attributes) {
  return give_attributes(handle, attributes);
}

}  // namespace remuda::tests::nvml

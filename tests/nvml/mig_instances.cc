// MIG: instances that are made and removed. They stand in the machine's file, so that every process that has the
// library sees them from then on. A GPU has room for as many of a size as its memory holds beside those that are there.
#include <algorithm>
#include <fmt/format.h>
#include <list>
#include <set>

#include "base/env.h"
#include "base/file.h"
#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {

/// A GPU instance that a caller has a handle of; it is a device once it has a compute instance.
struct Instance {
  Handle gpu = nullptr;
  unsigned id = 0;
  PartitionOffer profile;
  bool is_filled = false;
};

namespace {

/// Handles stay valid until the process ends.
InstanceHandle keep(Instance instance) {
  static std::list<Instance> kept;
  return &kept.emplace_back(std::move(instance));
}

const std::vector<PartitionOffer>& offers_of(const Gpu& gpu) {
  static const std::vector<PartitionOffer> none;
  return gpu.device.partitioned.value_or(false) && gpu.device.offers.has_value() ? gpu.device.offers.value() : none;
}

unsigned room_for(const Gpu& gpu, const PartitionOffer& offer) {
  int64_t left = gpu.device.memory_bytes.value_or(0);
  for (const auto& one : gpu.instances) left -= one->device.memory_bytes.value_or(0);
  const auto fits = std::max<int64_t>(0, offer.memory_bytes > 0 ? left / offer.memory_bytes : 0);
  return static_cast<unsigned>(std::min<int64_t>(fits, offer.most));
}

/// Changes the machine's file.
template <typename Change>
Code rewrite(Change change) {
  const std::string path = env::get(env::test_nvml).value_or("");
  const auto text = read_text(path);
  auto inventory = text ? parse_inventory(*text, path) : tl::unexpected(text.error());
  if (!inventory) return kUnknown;
  change(*inventory);
  auto file = PendingFile::create(path);
  return file && file->commit(to_pretty(to_json(*inventory))) ? kSuccess : kUnknown;
}

std::string unused_uuid(const Inventory& inventory) {
  std::string uuid;
  for (int number = 1; uuid.empty() || inventory.find(uuid); ++number)
    uuid = fmt::format("MIG-00000000-0000-0000-0000-{:012}", number);
  return uuid;
}

Code fill(Instance& instance) {
  const Gpu& gpu = *Session::instance().newest(instance.gpu);
  const Code code = rewrite([&](Inventory& inventory) {
    Device device{.kind = DeviceKind::partition, .vendor = gpu.device.vendor, .model = gpu.device.model};
    device.id = unused_uuid(inventory);
    device.uuid = device.id;
    device.parent = gpu.device.id;
    device.profile = instance.profile.profile;
    device.memory_bytes = instance.profile.memory_bytes;
    device.multiprocessors = instance.profile.multiprocessors;
    device.status.memory_used_bytes = int64_t{0};
    device.status.processes = std::vector<Process>{};
    for (const Device& other : inventory.devices) device.index += other.kind == DeviceKind::partition;
    inventory.devices.push_back(std::move(device));
  });
  instance.is_filled = code == kSuccess;
  return code;
}

const Device* device_of(const Instance& instance) {
  for (const auto& one : Session::instance().newest(instance.gpu)->instances)
    if (one->gpu_instance == instance.id) return &one->device;
  return nullptr;
}

}  // namespace

NVML_EXPORT Code nvmlDeviceGetGpuInstanceProfileInfo(Handle handle, unsigned number, InstanceProfile* profile) {
  return ask(handle, profile, [&](const Gpu& gpu) {
    if (number >= offers_of(gpu).size()) return kNotSupported;
    const PartitionOffer& offer = offers_of(gpu).at(number);
    *profile = {};
    profile->id = number;
    profile->slice_count = slices_of(offer.profile).gpu;
    profile->instance_count = static_cast<unsigned>(offer.most);
    profile->multiprocessor_count = static_cast<unsigned>(offer.multiprocessors);
    profile->memory_mb = static_cast<unsigned long long>(offer.memory_bytes) >> 20;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetGpuInstanceRemainingCapacity(Handle handle, unsigned profile, unsigned* count) {
  return ask(handle, count, [&](const Gpu& gpu) {
    if (profile >= offers_of(gpu).size()) return kInvalidArgument;
    *count = room_for(gpu, offers_of(gpu).at(profile));
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceCreateGpuInstance(Handle handle, unsigned profile, InstanceHandle* instance) {
  return ask(handle, static_cast<const void*>(instance), [&](const Gpu& gpu) {
    if (profile >= offers_of(gpu).size()) return kInvalidArgument;
    const PartitionOffer& offer = offers_of(gpu).at(profile);
    if (room_for(gpu, offer) == 0) return kInsufficientResources;
    *instance = keep({handle, static_cast<unsigned>(gpu.instances.size()) + 1, offer});
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetGpuInstanceById(Handle handle, unsigned id, InstanceHandle* instance) {
  return ask(handle, static_cast<const void*>(instance), [&](const Gpu& gpu) {
    const auto found = std::ranges::find(gpu.instances, id, &Gpu::gpu_instance);
    if (found == gpu.instances.end()) return kNotFound;
    *instance = keep({handle, id, {}, true});
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlGpuInstanceGetInfo(InstanceHandle instance, InstanceInfo* info) {
  if (!instance || !info) return kInvalidArgument;
  *info = {instance->gpu, instance->id, 0, 0, 0};
  return kSuccess;
}

NVML_EXPORT Code nvmlGpuInstanceDestroy(InstanceHandle instance) {
  if (!instance) return kInvalidArgument;
  return instance->is_filled ? kInUse : kSuccess;
}

NVML_EXPORT Code nvmlGpuInstanceGetComputeInstanceProfileInfo(InstanceHandle instance, unsigned number, unsigned,
                                                              ComputeProfile* profile) {
  if (!instance || !profile) return kInvalidArgument;
  if (number > 1) return kNotSupported;
  *profile = {};  // one with a part of the multiprocessors, and one with all
  profile->id = number;
  profile->slice_count = number == 0 ? 1 : slices_of(instance->profile.profile).gpu;
  profile->multiprocessor_count = profile->slice_count * 14;
  return kSuccess;
}

NVML_EXPORT Code nvmlGpuInstanceCreateComputeInstance(InstanceHandle instance, unsigned profile, ComputeHandle* made) {
  if (!instance || !made || profile > 1) return kInvalidArgument;
  *made = reinterpret_cast<ComputeHandle>(instance);
  return fill(*instance);
}

NVML_EXPORT Code nvmlGpuInstanceGetComputeInstanceById(InstanceHandle instance, unsigned id, ComputeHandle* compute) {
  if (!instance || !compute) return kInvalidArgument;
  if (id != 0) return kNotFound;
  *compute = reinterpret_cast<ComputeHandle>(instance);
  return kSuccess;
}

NVML_EXPORT Code nvmlComputeInstanceDestroy(ComputeHandle compute) {
  if (!compute) return kInvalidArgument;
  Instance& instance = *reinterpret_cast<InstanceHandle>(compute);
  const Device* device = device_of(instance);
  if (!device) return kNotFound;
  if (!device->status.processes.value_or({}).empty()) return kInUse;
  const std::string id = device->id;
  const Code code = rewrite([&](Inventory& inventory) {
    std::erase_if(inventory.devices, [&](const Device& one) { return one.id == id; });
    int index = 0;
    for (Device& one : inventory.devices)
      if (one.kind == DeviceKind::partition) one.index = index++;
  });
  instance.is_filled = code != kSuccess;
  return code;
}

}  // namespace remuda::tests::nvml

// MIG: instances that are made and removed. They stand in the machine's file, so that every process that has the
// library sees them from then on, also those that are no device as they have no compute instance. A GPU has room for as
// many of a size as its memory holds beside those that are there.
#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <list>
#include <set>
#include <utility>

#include "base/env.h"
#include "base/file.h"
#include "tests/nvml/answer.h"

namespace remuda::tests::nvml {

/// A GPU instance that a caller has a handle of; it is a device once it has a compute instance.
struct Instance {
  Handle gpu = nullptr;
  unsigned id = 0;
};

namespace {

/// Handles stay valid until the process ends.
InstanceHandle keep(Instance instance) {
  static std::list<Instance> kept;
  return &kept.emplace_back(instance);
}

/// At this point of a change, where that is asked for: as by kill -9.
void die_at(int point) {
  if (Session::instance().faults().die_at == point) std::raise(SIGKILL);
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

std::string unused_id(const Inventory& inventory, std::string_view before) {
  std::string id;
  for (int number = 1; id.empty() || inventory.find(id); ++number) id = fmt::format("{}{:012}", before, number);
  return id;
}

/// By the file as it is now.
const Device* device_of(const Instance& instance) {
  if (!Session::instance().machine()) return nullptr;
  for (const auto& one : Session::instance().newest(instance.gpu)->instances)
    if (one->gpu_instance == instance.id) return &one->device;
  return nullptr;
}

bool is_empty(const Device& device) { return device.id.starts_with(kEmptyInstance); }

Code add_empty(const Gpu& gpu, const PartitionOffer& profile) {
  return rewrite([&](Inventory& inventory) {
    Device device{.kind = DeviceKind::partition, .vendor = gpu.device.vendor, .model = gpu.device.model};
    device.id = unused_id(inventory, kEmptyInstance);
    device.parent = gpu.device.id;
    device.profile = profile.profile;
    device.memory_bytes = profile.memory_bytes;
    device.multiprocessors = profile.multiprocessors;
    device.status.memory_used_bytes = int64_t{0};
    device.status.processes = std::vector<Process>{};
    for (const Device& other : inventory.devices) device.index += other.kind == DeviceKind::partition;
    inventory.devices.push_back(std::move(device));
  });
}

/// It becomes a device, or none.
Code set_empty(const std::string& id, bool becomes_empty) {
  return rewrite([&](Inventory& inventory) {
    const auto device = std::ranges::find(inventory.devices, id, &Device::id);
    if (device == inventory.devices.end()) return;
    device->id = unused_id(inventory, becomes_empty ? kEmptyInstance : "MIG-00000000-0000-0000-0000-");
    device->uuid = becomes_empty ? Reading<std::string>{} : Reading<std::string>(device->id);
  });
}

Code remove(const std::string& id) {
  return rewrite([&](Inventory& inventory) {
    std::erase_if(inventory.devices, [&](const Device& one) { return one.id == id; });
    int index = 0;
    for (Device& one : inventory.devices)
      if (one.kind == DeviceKind::partition) one.index = index++;
  });
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
    *instance = keep({handle, static_cast<unsigned>(gpu.instances.size()) + 1});
    const Code code = add_empty(gpu, offer);
    if (Session::instance().faults().taken != 0)
      return set_empty(device_of(**instance)->id, false), kInsufficientResources;
    die_at(kHalfMade);
    return code;
  });
}

NVML_EXPORT Code nvmlDeviceGetGpuInstanceById(Handle handle, unsigned id, InstanceHandle* instance) {
  return ask(handle, static_cast<const void*>(instance), [&](const Gpu& gpu) {
    const auto found = std::ranges::find(gpu.instances, id, &Gpu::gpu_instance);
    if (found == gpu.instances.end()) return kNotFound;
    *instance = keep({handle, id});
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlGpuInstanceGetInfo(InstanceHandle instance, InstanceInfo* info) {
  if (!instance || !info) return kInvalidArgument;
  *info = {instance->gpu, instance->id, 0, 0, 0};
  return kSuccess;
}

NVML_EXPORT Code nvmlGpuInstanceDestroy(InstanceHandle instance) {
  const Device* device = instance ? device_of(*instance) : nullptr;
  if (!device) return kInvalidArgument;
  static bool was_asked = false;
  if (Session::instance().faults().stuck != 0 && !std::exchange(was_asked, true)) return kInUse;
  return is_empty(*device) ? remove(device->id) : kInUse;
}

NVML_EXPORT Code nvmlGpuInstanceGetComputeInstanceProfileInfo(InstanceHandle instance, unsigned number, unsigned,
                                                              ComputeProfile* profile) {
  const Device* device = instance ? device_of(*instance) : nullptr;
  if (!device || !profile) return kInvalidArgument;
  if (number > 1) return kNotSupported;
  *profile = {};  // one with a part of the multiprocessors, and one with all
  profile->id = number;
  profile->slice_count = number == 0 ? 1 : slices_of(device->profile.value_or("")).gpu;
  profile->multiprocessor_count = profile->slice_count * 14;
  return kSuccess;
}

NVML_EXPORT Code nvmlGpuInstanceCreateComputeInstance(InstanceHandle instance, unsigned profile, ComputeHandle* made) {
  const Device* device = instance ? device_of(*instance) : nullptr;
  if (!device || !made || profile > 1) return kInvalidArgument;
  if (Session::instance().faults().stuck != 0) return kUnknown;
  *made = reinterpret_cast<ComputeHandle>(instance);
  const Code code = set_empty(device->id, false);
  die_at(kMade);
  return code;
}

NVML_EXPORT Code nvmlGpuInstanceGetComputeInstanceById(InstanceHandle instance, unsigned id, ComputeHandle* compute) {
  if (!instance || !compute) return kInvalidArgument;
  if (id != 0) return kNotFound;
  *compute = reinterpret_cast<ComputeHandle>(instance);
  return kSuccess;
}

NVML_EXPORT Code nvmlComputeInstanceDestroy(ComputeHandle compute) {
  if (!compute) return kInvalidArgument;
  const Device* device = device_of(*reinterpret_cast<InstanceHandle>(compute));
  if (!device || is_empty(*device)) return kNotFound;
  if (!device->status.processes.value_or({}).empty()) return kInUse;
  const Code code = set_empty(device->id, true);
  die_at(kHalfRemoved);
  return code;
}

}  // namespace remuda::tests::nvml

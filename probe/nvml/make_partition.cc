// A partition that is a device is a GPU instance with one compute instance, which has all of its multiprocessors.
#include <fmt/format.h>
#include <map>
#include <optional>

#include "base/text.h"
#include "probe/nvml/ask.h"
#include "probe/nvml/probe.h"
#include "probe/nvml/read_device.h"

namespace remuda::probe::nvml {
namespace {

tl::unexpected<Error> refused(const Missing& missing, const std::string& of) {
  return failed(fmt::format("{}: {}", printable(of), missing.detail));
}

Result<void> done(const std::string& of, std::string_view what, Code code) {
  return code == kSuccess ? Result<void>{} : refused(why(code, what), of);
}

Result<Lib> start(const std::string& library) {
  REMUDA_ASSIGN(const Lib lib, load_lib(library));
  REMUDA_TRY(done(library, "its start", lib.init()));
  if (!lib.handle_by_uuid || !lib.gpu_of_partition || !lib.gpu_instance_profile || !lib.create_gpu_instance ||
      !lib.gpu_instance_by_id || !lib.gpu_instance_info || !lib.destroy_gpu_instance || !lib.compute_instance_profile ||
      !lib.create_compute_instance || !lib.compute_instance_by_id || !lib.destroy_compute_instance ||
      !lib.compute_instance || !lib.gpu_instance || !lib.uuid || !lib.mig_max_count || !lib.mig_handle)
    return failed(fmt::format("{} is of a driver that cannot make partitions", library));
  return lib;
}

/// The first of that name, as read_offers() has it.
std::optional<unsigned> find_profile(const Lib& lib, Handle gpu, const std::string& name) {
  Device device;
  read_memory(lib, gpu, device);
  for (unsigned number = 0; number < kGpuInstanceProfiles; ++number) {
    const auto known = ask<GpuInstanceProfile>("size", lib.gpu_instance_profile, gpu, number);
    if (known.has_value() && profile_name(known.value(), device.memory_bytes.value_or(0)) == name)
      return known.value().id;
  }
  return std::nullopt;
}

/// The compute instance with the most multiprocessors that the instance can have.
Result<ComputeInstance> fill(const Lib& lib, const std::string& of, GpuInstance instance) {
  std::optional<ComputeInstanceProfile> largest;
  for (unsigned number = 0; number < kComputeInstanceProfiles; ++number) {
    ComputeInstanceProfile profile{};
    if (lib.compute_instance_profile(instance, number, kSharedEngines, &profile) != kSuccess) continue;
    if (!largest || profile.multiprocessors > largest->multiprocessors) largest = profile;
  }
  if (!largest) return failed(fmt::format("{}: its instance can have no compute instance", of));
  ComputeInstance made = nullptr;
  REMUDA_TRY(done(of, "making a compute instance", lib.create_compute_instance(instance, largest->id, &made)));
  return made;
}

/// The UUIDs of the GPU's devices, by the numbers of their instances.
Result<std::map<unsigned, std::string>> devices_of(const Lib& lib, const std::string& of, Handle gpu) {
  std::map<unsigned, std::string> devices;
  unsigned count = 0;
  if (const Code code = lib.mig_max_count(gpu, &count); code != kSuccess && code != kNotSupported)
    return refused(why(code, "partitions"), of);
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    const Code code = lib.mig_handle(gpu, i, &handle);
    if (code == kNotFound) continue;  // there is none at i
    if (code != kSuccess) return refused(why(code, "partition"), of);
    const auto id = ask<unsigned>("instance", lib.gpu_instance, handle);
    const auto uuid = ask_text("UUID of a partition", lib.uuid, handle);
    if (!id.has_value()) return refused(id.missing(), of);
    if (!uuid.has_value()) return refused(uuid.missing(), of);
    devices[id.value()] = uuid.value();
  }
  return devices;
}

/// The device that an instance of the GPU has become.
Result<std::string> uuid_of(const Lib& lib, const std::string& of, Handle gpu, GpuInstance instance) {
  GpuInstanceInfo info{};
  REMUDA_TRY(done(of, "reading the new instance", lib.gpu_instance_info(instance, &info)));
  REMUDA_ASSIGN(const auto devices, devices_of(lib, of, gpu));
  const auto found = devices.find(info.id);
  return found != devices.end() ? Result<std::string>(found->second)
                                : failed(fmt::format("{}: the new partition is not among its devices", of));
}

Result<Handle> handle_of(const Lib& lib, const std::string& uuid) {
  const auto handle = ask<Handle>("UUID", lib.handle_by_uuid, uuid.c_str());
  return handle.has_value() ? Result<Handle>(handle.value()) : refused(handle.missing(), uuid);
}

Result<std::string> make_instance(const std::string& gpu_uuid, const std::string& profile, const std::string& library) {
  REMUDA_ASSIGN(const Lib lib, start(library));
  REMUDA_ASSIGN(const Handle gpu, handle_of(lib, gpu_uuid));
  const auto id = find_profile(lib, gpu, profile);
  if (!id) return failed(fmt::format("{} has no partitions of size {}", gpu_uuid, printable(profile)));
  GpuInstance instance = nullptr;
  REMUDA_TRY(done(gpu_uuid, "making " + profile, lib.create_gpu_instance(gpu, *id, &instance)));
  const auto compute = fill(lib, gpu_uuid, instance);
  auto uuid = compute ? uuid_of(lib, gpu_uuid, gpu, instance) : tl::unexpected(compute.error());
  if (uuid) return uuid;
  // Nobody could take away, or use, what has no name.
  if (compute) lib.destroy_compute_instance(*compute);
  lib.destroy_gpu_instance(instance);
  return uuid;
}

Result<void> remove_instance(const std::string& uuid, const std::string& library) {
  REMUDA_ASSIGN(const Lib lib, start(library));
  REMUDA_ASSIGN(const Handle partition, handle_of(lib, uuid));
  Handle gpu = nullptr;
  REMUDA_TRY(done(uuid, "its GPU", lib.gpu_of_partition(partition, &gpu)));
  unsigned instance_id = 0, compute_id = 0;
  REMUDA_TRY(done(uuid, "its instance", lib.gpu_instance(partition, &instance_id)));
  REMUDA_TRY(done(uuid, "its compute instance", lib.compute_instance(partition, &compute_id)));
  GpuInstance instance = nullptr;
  ComputeInstance compute = nullptr;
  REMUDA_TRY(done(uuid, "its instance", lib.gpu_instance_by_id(gpu, instance_id, &instance)));
  REMUDA_TRY(done(uuid, "its compute instance", lib.compute_instance_by_id(instance, compute_id, &compute)));
  REMUDA_TRY(done(uuid, "removing it", lib.destroy_compute_instance(compute)));
  return done(uuid, "removing its instance", lib.destroy_gpu_instance(instance));
}

/// The driver tells which there are only by size, or one by its number.
Result<std::map<unsigned, std::string>> instances_of(const std::string& gpu_uuid, const std::string& library) {
  constexpr unsigned kMostInstances = 64;
  REMUDA_ASSIGN(const Lib lib, start(library));
  REMUDA_ASSIGN(const Handle gpu, handle_of(lib, gpu_uuid));
  REMUDA_ASSIGN(auto instances, devices_of(lib, gpu_uuid, gpu));
  for (unsigned number = 0; number < kMostInstances; ++number) {
    GpuInstance instance = nullptr;
    const Code code = lib.gpu_instance_by_id(gpu, number, &instance);
    if (code == kSuccess)
      instances.try_emplace(number);
    else if (code != kNotFound && code != kInvalidArgument && code != kNotSupported)
      return refused(why(code, "its instances"), gpu_uuid);
  }
  return instances;
}

Result<void> remove_empty(const std::string& gpu_uuid, unsigned number, const std::string& library) {
  REMUDA_ASSIGN(const Lib lib, start(library));
  REMUDA_ASSIGN(const Handle gpu, handle_of(lib, gpu_uuid));
  GpuInstance instance = nullptr;
  REMUDA_TRY(done(gpu_uuid, "its instance", lib.gpu_instance_by_id(gpu, number, &instance)));
  return done(gpu_uuid, "removing an instance that is no device", lib.destroy_gpu_instance(instance));
}

}  // namespace
}  // namespace remuda::probe::nvml

namespace remuda::probe {

Result<std::string> make_nvml_partition(const std::string& gpu_uuid, const std::string& profile,
                                        const std::string& library) {
  return nvml::make_instance(gpu_uuid, profile, library);
}

Result<void> remove_nvml_partition(const std::string& uuid, const std::string& library) {
  return nvml::remove_instance(uuid, library);
}

Result<std::map<unsigned, std::string>> nvml_instances(const std::string& gpu_uuid, const std::string& library) {
  return nvml::instances_of(gpu_uuid, library);
}

Result<void> remove_empty_nvml_instance(const std::string& gpu_uuid, unsigned number, const std::string& library) {
  return nvml::remove_empty(gpu_uuid, number, library);
}

}  // namespace remuda::probe

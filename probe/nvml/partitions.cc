#include <algorithm>
#include <fmt/format.h>

#include "probe/nvml/ask.h"
#include "probe/nvml/processes.h"
#include "probe/nvml/read_device.h"
#include "probe/sysfs.h"

namespace remuda::probe::nvml {
namespace {

constexpr unsigned kMaxPartitions = 64;

/// "3g.20gb" at the end of "NVIDIA A100-SXM4-40GB MIG 3g.20gb", or else from sizes.
Reading<std::string> read_profile(const std::string& name, const Reading<Attributes>& attributes,
                                  const Device& parent) {
  constexpr std::string_view kMark = " MIG ";
  if (const size_t mark = name.rfind(kMark); mark != std::string::npos) return name.substr(mark + kMark.size());
  return then(attributes, [&](const Attributes& sizes) -> Reading<std::string> {
    const auto profile = profile_of(sizes, parent.memory_bytes.value_or(0));
    return profile ? Reading<std::string>(*profile) : no_sense("profile");
  });
}

/// Asks with the instance's own handle; where the driver does not answer that, uses the GPU's list.
Reading<std::vector<Process>> processes_of(const Lib& lib, Handle gpu, Handle partition, const Reading<unsigned>& id) {
  if (!id.has_value()) return id.missing();
  auto own = read_processes(lib, partition, id.value());
  return own.has_value() ? own : read_processes(lib, gpu, id.value());
}

Device inherited(const Device& parent) {
  Device device{.kind = DeviceKind::partition, .vendor = parent.vendor, .model = parent.model, .parent = parent.id};
  device.architecture = parent.architecture;
  device.compute_capability = parent.compute_capability;
  device.cores = parent.cores;
  device.numa_node = parent.numa_node;
  return device;
}

Device read_partition(const Context& context, OpenGpu& gpu, Handle handle, const Device& parent) {
  const Lib& lib = context.lib;
  Device device = inherited(parent);
  device.uuid = ask_text("UUID", lib.uuid, handle);
  const auto attributes = ask<Attributes>("size of the partition", lib.attributes, handle);
  device.profile = read_profile(ask_text("name", lib.name, handle).value_or(""), attributes, parent);
  device.multiprocessors = then(attributes, [](const Attributes& sizes) {
    return fitting<int>("multiprocessors", Reading<unsigned>(sizes.multiprocessors));
  });
  read_memory(lib, handle, device);
  const auto id = ask<unsigned>("instance", lib.gpu_instance, handle);
  device.status.processes = processes_of(lib, gpu.handle, handle, id);
  if (id.has_value()) {
    gpu.counters[id.value()].read(lib, gpu.handle, id.value(), context.now_s, device.status);
    device.status.xid = gpu.xid.of_instance(id.value());
  }
  return device;
}

Device unread_partition(const Device& parent, const Missing& missing) {
  Device device = inherited(parent);
  device.uuid = device.profile = missing;
  device.memory_bytes = missing;
  device.multiprocessors = missing;
  sysfs::FillUnread visitor{missing};
  Status::fields(device.status, visitor);
  return device;
}

}  // namespace

/// Of profiles with one name, as with engines or without, the first is the plain one.
Reading<std::vector<PartitionOffer>> read_offers(const Lib& lib, Handle handle, const Device& gpu) {
  if (!lib.gpu_instance_profile || !lib.gpu_instance_capacity) return no_call("sizes of partitions");
  std::vector<PartitionOffer> offers;
  for (unsigned number = 0; number < kGpuInstanceProfiles; ++number) {
    const auto known = ask<GpuInstanceProfile>("size of partitions", lib.gpu_instance_profile, handle, number);
    if (!known.has_value()) continue;
    const auto name = profile_name(known.value(), gpu.memory_bytes.value_or(0));
    if (!name || std::ranges::find(offers, *name, &PartitionOffer::profile) != offers.end()) continue;
    const auto room = ask<unsigned>("room for partitions", lib.gpu_instance_capacity, handle, known.value().id);
    offers.push_back({*name, static_cast<int64_t>(known.value().memory_mib) << 20,
                      static_cast<int>(known.value().multiprocessors), static_cast<int>(room.value_or(0)),
                      static_cast<int>(known.value().most)});
  }
  return offers;
}

std::vector<Device> read_partitions(const Context& context, OpenGpu& gpu, const Device& parent) {
  std::vector<Device> partitions;
  if (!parent.partitioned.value_or(false) || !context.lib.mig_handle) return partitions;
  const auto count = ask<unsigned>("partitions", context.lib.mig_max_count, gpu.handle);
  for (unsigned i = 0; i < std::min(count.value_or(0), kMaxPartitions); ++i) {
    const auto handle = ask<Handle>("partition", context.lib.mig_handle, gpu.handle, i);
    if (handle.has_value() && handle.value())
      partitions.push_back(read_partition(context, gpu, handle.value(), parent));
    else if (!handle.has_value() && handle.missing().reason != MissingReason::unsupported)  // else there is none at i
      partitions.push_back(unread_partition(parent, handle.missing()));
  }
  return partitions;
}

}  // namespace remuda::probe::nvml

#include "probe/nvml/testing/fake_lib.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <list>

namespace remuda::probe::nvml::fake {
namespace {

Gpu& of(Handle handle) { return *reinterpret_cast<Gpu*>(handle); }
Handle to_handle(Gpu& gpu) { return reinterpret_cast<Handle>(&gpu); }

/// Runs the GPU's on_question, and returns its answer.
Code asked(Handle handle) {
  if (of(handle).on_question) of(handle).on_question();
  return of(handle).answers;
}

Code text(Handle handle, const std::string& value, char* out, unsigned size) {
  if (const Code code = asked(handle); code != kSuccess) return code;
  if (value.size() >= size) return kInsufficientSize;
  std::memcpy(out, value.c_str(), value.size() + 1);
  return kSuccess;
}

template <auto kValue, typename T>
Code constant(Handle handle, T* out) {
  *out = kValue;
  return asked(handle);
}

template <auto kFirst, auto kSecond, typename T>
Code pair(Handle handle, T* first, T* second) {
  *first = kFirst, *second = kSecond;
  return asked(handle);
}

template <std::vector<ProcessInfo> Gpu::* kList>
Code processes(Handle handle, unsigned* count, void* out) {
  if (const Code code = asked(handle); code != kSuccess) return code;
  const auto& list = of(handle).*kList;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.size() > room) return kInsufficientSize;
  for (size_t i = 0; i < list.size(); ++i)
    std::memcpy(static_cast<std::byte*>(out) + i * machine().record_size, &list[i], machine().record_size);
  return kSuccess;
}

Code utilization_of_processes(Handle handle, ProcessSample* out, unsigned* count, unsigned long long) {
  const auto& samples = of(handle).samples;
  const unsigned room = *count;
  *count = static_cast<unsigned>(samples.size());
  if (samples.empty()) return kNotFound;
  if (samples.size() > room) return kInsufficientSize;
  std::ranges::copy(samples, out);
  return kSuccess;
}

Code relation(const std::map<size_t, unsigned>& relations, Handle other, unsigned* out) {
  for (const auto& [index, value] : relations)
    if (index < machine().gpus.size() && &machine().gpus[index] == &of(other)) return *out = value, kSuccess;
  return kUnknown;
}

void add_system(Lib& lib) {
  lib.init = [] { return machine().init; };
  lib.driver_version = [](char* out, unsigned size) { return std::snprintf(out, size, "550.54.15") > 0 ? 0 : 1; };
  lib.library_version = [](char* out, unsigned size) { return std::snprintf(out, size, "12.550.54.15") > 0 ? 0 : 1; };
  lib.runtime_version = [](int* out) { return *out = 12040, kSuccess; };
  lib.device_count = [](unsigned* out) { return *out = static_cast<unsigned>(machine().gpus.size()), kSuccess; };
  lib.handle_by_index = [](unsigned index, Handle* out) {
    Gpu& gpu = machine().gpus.at(index);
    if (gpu.on_open) gpu.on_open();
    if (gpu.open == kSuccess) *out = to_handle(gpu);
    return gpu.open;
  };
}

void add_identity(Lib& lib) {
  lib.name = [](Handle h, char* out, unsigned size) { return text(h, of(h).name, out, size); };
  lib.uuid = [](Handle h, char* out, unsigned size) { return text(h, of(h).uuid, out, size); };
  lib.serial = [](Handle h, char* out, unsigned size) { return text(h, "1320", out, size); };
  lib.pci_info = [](Handle h, PciInfo* out) { return *out = of(h).pci, asked(h); };
  lib.minor_number = constant<3>;
  lib.compute_capability = pair<8, 0>;
  lib.memory = [](Handle h, Memory* out) {
    const uint64_t total = of(h).memory_mib << 20;
    *out = {total, total / 2, total / 2};
    return asked(h);
  };
}

void add_readings(Lib& lib) {
  lib.utilization = [](Handle h, Utilization* out) { return *out = {75, 40}, asked(h); };
  lib.power_usage = constant<250'500>;
  lib.power_limit = constant<400'000>;
  lib.power_limit_range = pair<100'000, 450'000>;
  lib.temperature = [](Handle h, unsigned, unsigned* out) { return *out = 61, asked(h); };
  lib.clock = [](Handle h, unsigned which, unsigned* out) { return *out = which == kClockSm ? 1410 : 1215, asked(h); };
  lib.clock_max = lib.clock;
  lib.throttle_reasons = constant<0x24>;
  lib.ecc_mode = pair<1, 0>;
  lib.ecc_errors = [](Handle h, unsigned type, unsigned, uint64_t* out) {
    return *out = type == kEccCorrected ? 2 : 0, asked(h);
  };
  lib.pcie_generation = constant<1>;
  lib.pcie_width = constant<16>;
  lib.pcie_generation_max = constant<4>;
  lib.pcie_width_max = constant<16>;
  lib.persistence = constant<1>;
  lib.compute_mode = constant<3>;
  lib.compute_processes_v1 = processes<&Gpu::compute>;
  lib.graphics_processes_v1 = processes<&Gpu::graphics>;
}

void add_links(Lib& lib) {
  lib.common_ancestor = [](Handle a, Handle b, unsigned* out) { return relation(of(a).paths, b, out); };
  lib.peer_status = [](Handle a, Handle b, unsigned which, unsigned* out) {
    return relation(which == kPeerRead    ? of(a).peer_read
                    : which == kPeerWrite ? of(a).peer_write
                                          : of(a).peer_nvlink,
                    b, out);
  };
  lib.nvlink_state = [](Handle h, unsigned link, unsigned* out) {
    if (of(h).answers != kSuccess) return of(h).answers;
    if (of(h).nvlinks.empty()) return kNotSupported;
    if (link >= of(h).nvlinks.size()) return kInvalidArgument;
    return *out = of(h).nvlinks[link].active, kSuccess;
  };
  lib.nvlink_version = [](Handle h, unsigned link, unsigned* out) {
    return *out = of(h).nvlinks[link].version, kSuccess;
  };
  lib.nvlink_remote_pci = [](Handle h, unsigned link, PciInfo* out) {
    const std::string& pci = of(h).nvlinks[link].pci;
    if (pci.empty()) return kNotSupported;
    std::snprintf(out->bus_id, sizeof out->bus_id, "0000%s", pci.c_str());
    return kSuccess;
  };
}

void add_partitions(Lib& lib) {
  lib.mig_mode = [](Handle h, unsigned* now, unsigned* pending) { return *now = *pending = of(h).mig, asked(h); };
  lib.mig_max_count = constant<7u>;
  lib.mig_handle = [](Handle h, unsigned index, Handle* out) {
    auto& partitions = of(h).partitions;
    if (index >= partitions.size()) return kNotFound;
    if (partitions[index].open == kSuccess) *out = to_handle(partitions[index]);
    return partitions[index].open;
  };
  lib.gpu_instance_profile = [](Handle h, unsigned number, GpuInstanceProfile* out) {
    const auto& profiles = of(h).profiles;
    if (number >= profiles.size() || profiles[number].slices == 0) return kNotSupported;
    return *out = profiles[number], kSuccess;
  };
  lib.gpu_instance_capacity = [](Handle, unsigned id, unsigned* out) { return *out = id == 19 ? 4 : 0, kSuccess; };
  lib.gpu_instance = [](Handle h, unsigned* out) { return *out = of(h).instance, asked(h); };
  lib.attributes = [](Handle h, Attributes* out) {
    *out = {.multiprocessors = 14 * of(h).slices,
            .gpu_slices = of(h).slices,
            .compute_slices = of(h).slices,
            .memory_mib = of(h).memory_mib};
    return asked(h);
  };
}

void add_events(Lib& lib) {
  static std::list<Handle> sets;  // each watches one GPU
  lib.event_set_create = [](EventSet* out) {
    return *out = reinterpret_cast<EventSet>(&sets.emplace_back(nullptr)), kSuccess;
  };
  lib.event_types = constant < kEventXid | 1 > ;
  lib.register_events = [](Handle h, unsigned long long, EventSet set) {
    *reinterpret_cast<Handle*>(set) = h;
    return asked(h);
  };
  lib.event_wait = [](EventSet set, EventData* out, unsigned) {
    Gpu& gpu = of(*reinterpret_cast<Handle*>(set));
    if (gpu.answers != kSuccess) return gpu.answers;
    if (gpu.events.empty()) return kTimeout;
    *out = gpu.events.front();
    gpu.events.erase(gpu.events.begin());
    return kSuccess;
  };
}

void add_counters(Lib& lib) {
  static std::list<int> samples;  // 1 once taken
  lib.gpm_support = [](Handle h, GpmSupport* out) { return out->supported = 1, asked(h); };
  lib.gpm_alloc = [](GpmSample* out) { return *out = reinterpret_cast<GpmSample>(&samples.emplace_back(0)), kSuccess; };
  lib.gpm_sample = [](Handle h, GpmSample into) { return *reinterpret_cast<int*>(into) = 1, asked(h); };
  lib.gpm_sample_instance = [](Handle h, unsigned, GpmSample into) {
    return *reinterpret_cast<int*>(into) = 1, asked(h);
  };
  lib.gpm_metrics = [](GpmRequest* request) {
    const bool taken = *reinterpret_cast<int*>(request->earlier) && *reinterpret_cast<int*>(request->later);
    if (request->version != 1 || !taken || request->earlier == request->later) return kInvalidArgument;
    for (unsigned i = 0; i < request->count; ++i) {
      request->metrics[i].value = 10.0 * request->metrics[i].id;
      request->metrics[i].code = request->metrics[i].id == kGpmTensorActive ? kNotSupported : kSuccess;
    }
    return kSuccess;
  };
}

}  // namespace

Machine& machine() {
  static Machine machine;
  return machine;
}

PciInfo pci_info(unsigned bus) {
  PciInfo pci{.bus = bus};
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "00000000:%02X:00.0", bus);
  return pci;
}

Gpu gpu(unsigned bus) { return {.uuid = fmt::format("GPU-aaaa-{:02x}", bus), .pci = pci_info(bus)}; }

Lib old_driver() {
  Lib lib;
  add_system(lib);
  add_identity(lib);
  add_readings(lib);
  add_links(lib);
  return lib;
}

Lib new_driver() {
  Lib lib = old_driver();
  add_partitions(lib);
  add_events(lib);
  add_counters(lib);
  lib.architecture = constant<7>;
  lib.core_count = constant<6912>;
  lib.memory_v2 = [](Handle h, MemoryV2* out) {
    if (out->version != version_word<MemoryV2>(2)) return kArgumentVersionMismatch;
    const uint64_t total = of(h).memory_mib << 20;
    *out = {out->version, total, 1 << 30, total / 2, total / 2 - (1 << 30)};
    return asked(h);
  };
  lib.energy = constant<7'000'500>;
  lib.remapped_rows = [](Handle h, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
    return *corrected = 1, *uncorrected = 2, *pending = 1, *failed = 0, asked(h);
  };
  lib.field_values = [](Handle h, int count, FieldValue* out) {
    for (int i = 0; i < count; ++i) {
      const unsigned id = out[i].id;
      out[i] = id == kFieldRecoveryAction ? of(h).recovery : FieldValue{.code = kNotSupported};
      out[i].id = id;
    }
    return asked(h);
  };
  lib.pcie_generation_card = constant<4>;
  lib.cpu_affinity = [](Handle h, unsigned size, unsigned long* out) {
    std::copy_n(of(h).cores.begin(), std::min<size_t>(size, of(h).cores.size()), out);
    return asked(h);
  };
  lib.memory_affinity = [](Handle h, unsigned, unsigned long* out, unsigned) { return *out = 0b10, asked(h); };
  lib.compute_processes = processes<&Gpu::compute>;
  lib.graphics_processes = processes<&Gpu::graphics>;
  lib.mps_processes = processes<&Gpu::mps>;
  lib.process_utilization = utilization_of_processes;
  lib.process_details = [] { return kSuccess; };
  lib.protected_memory_info = [] { return kSuccess; };
  lib.nvlink_remote_type = [](Handle h, unsigned link, unsigned* out) {
    return *out = of(h).nvlinks[link].type, kSuccess;
  };
  return lib;
}

}  // namespace remuda::probe::nvml::fake

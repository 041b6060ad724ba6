// Lib: the calls of libnvidia-ml.so.1, found at run time. One list names field, prototype and symbols.
#pragma once

#include <string>
#include <type_traits>

#include "base/result.h"
#include "probe/nvml/abi.h"

namespace remuda::probe::nvml {

// X(field, prototype, symbols newest first). Symbols on one line write the same struct, or its first part.
#define REMUDA_NVML_SYMBOLS(X)                                                                                      \
  X(init, Code(), "nvmlInit_v2", "nvmlInit")                                                                        \
  X(driver_version, Code(char*, unsigned), "nvmlSystemGetDriverVersion")                                            \
  X(library_version, Code(char*, unsigned), "nvmlSystemGetNVMLVersion")                                             \
  X(runtime_version, Code(int*), "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")             \
  X(device_count, Code(unsigned*), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                                   \
  X(handle_by_index, Code(unsigned, Handle*), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")        \
  X(name, Code(Handle, char*, unsigned), "nvmlDeviceGetName")                                                       \
  X(uuid, Code(Handle, char*, unsigned), "nvmlDeviceGetUUID")                                                       \
  X(serial, Code(Handle, char*, unsigned), "nvmlDeviceGetSerial")                                                   \
  X(minor_number, Code(Handle, unsigned*), "nvmlDeviceGetMinorNumber")                                              \
  X(pci_info, Code(Handle, PciInfo*), "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo") \
  X(architecture, Code(Handle, unsigned*), "nvmlDeviceGetArchitecture")                                             \
  X(compute_capability, Code(Handle, int*, int*), "nvmlDeviceGetCudaComputeCapability")                             \
  X(core_count, Code(Handle, unsigned*), "nvmlDeviceGetNumGpuCores")                                                \
  X(memory_v2, Code(Handle, MemoryV2*), "nvmlDeviceGetMemoryInfo_v2")                                               \
  X(memory, Code(Handle, Memory*), "nvmlDeviceGetMemoryInfo")                                                       \
  X(utilization, Code(Handle, Utilization*), "nvmlDeviceGetUtilizationRates")                                       \
  X(power_usage, Code(Handle, unsigned*), "nvmlDeviceGetPowerUsage")                                                \
  X(power_limit, Code(Handle, unsigned*), "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")   \
  X(power_limit_range, Code(Handle, unsigned*, unsigned*), "nvmlDeviceGetPowerManagementLimitConstraints")          \
  X(energy, Code(Handle, uint64_t*), "nvmlDeviceGetTotalEnergyConsumption")                                         \
  X(temperature_v1, Code(Handle, Temperature*), "nvmlDeviceGetTemperatureV")                                        \
  X(temperature, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetTemperature")                                     \
  X(clock, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetClockInfo")                                             \
  X(clock_max, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetMaxClockInfo")                                      \
  X(throttle_reasons, Code(Handle, uint64_t*), "nvmlDeviceGetCurrentClocksEventReasons",                            \
    "nvmlDeviceGetCurrentClocksThrottleReasons")                                                                    \
  X(ecc_mode, Code(Handle, unsigned*, unsigned*), "nvmlDeviceGetEccMode")                                           \
  X(ecc_errors, Code(Handle, unsigned, unsigned, uint64_t*), "nvmlDeviceGetTotalEccErrors")                         \
  X(remapped_rows, Code(Handle, unsigned*, unsigned*, unsigned*, unsigned*), "nvmlDeviceGetRemappedRows")           \
  X(field_values, Code(Handle, int, FieldValue*), "nvmlDeviceGetFieldValues")                                       \
  X(pcie_generation, Code(Handle, unsigned*), "nvmlDeviceGetCurrPcieLinkGeneration")                                \
  X(pcie_width, Code(Handle, unsigned*), "nvmlDeviceGetCurrPcieLinkWidth")                                          \
  X(pcie_generation_max, Code(Handle, unsigned*), "nvmlDeviceGetMaxPcieLinkGeneration")                             \
  X(pcie_generation_card, Code(Handle, unsigned*), "nvmlDeviceGetGpuMaxPcieLinkGeneration")                         \
  X(pcie_width_max, Code(Handle, unsigned*), "nvmlDeviceGetMaxPcieLinkWidth")                                       \
  X(persistence, Code(Handle, unsigned*), "nvmlDeviceGetPersistenceMode")                                           \
  X(compute_mode, Code(Handle, unsigned*), "nvmlDeviceGetComputeMode")                                              \
  X(cpu_affinity, Code(Handle, unsigned, unsigned long*), "nvmlDeviceGetCpuAffinity")                               \
  X(memory_affinity, Code(Handle, unsigned, unsigned long*, unsigned), "nvmlDeviceGetMemoryAffinity")               \
  X(compute_processes, Code(Handle, unsigned*, void*), "nvmlDeviceGetComputeRunningProcesses_v3",                   \
    "nvmlDeviceGetComputeRunningProcesses_v2")                                                                      \
  X(compute_processes_v1, Code(Handle, unsigned*, void*), "nvmlDeviceGetComputeRunningProcesses")                   \
  X(graphics_processes, Code(Handle, unsigned*, void*), "nvmlDeviceGetGraphicsRunningProcesses_v3",                 \
    "nvmlDeviceGetGraphicsRunningProcesses_v2")                                                                     \
  X(graphics_processes_v1, Code(Handle, unsigned*, void*), "nvmlDeviceGetGraphicsRunningProcesses")                 \
  X(mps_processes, Code(Handle, unsigned*, void*), "nvmlDeviceGetMPSComputeRunningProcesses_v3",                    \
    "nvmlDeviceGetMPSComputeRunningProcesses_v2")                                                                   \
  X(mps_processes_v1, Code(Handle, unsigned*, void*), "nvmlDeviceGetMPSComputeRunningProcesses")                    \
  X(process_utilization, Code(Handle, ProcessSample*, unsigned*, unsigned long long),                               \
    "nvmlDeviceGetProcessUtilization")                                                                              \
  X(common_ancestor, Code(Handle, Handle, unsigned*), "nvmlDeviceGetTopologyCommonAncestor")                        \
  X(peer_status, Code(Handle, Handle, unsigned, unsigned*), "nvmlDeviceGetP2PStatus")                               \
  X(nvlink_state, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetNvLinkState")                                    \
  X(nvlink_version, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetNvLinkVersion")                                \
  X(nvlink_remote_type, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetNvLinkRemoteDeviceType")                   \
  X(nvlink_remote_pci, Code(Handle, unsigned, PciInfo*), "nvmlDeviceGetNvLinkRemotePciInfo_v2",                     \
    "nvmlDeviceGetNvLinkRemotePciInfo")                                                                             \
  X(mig_mode, Code(Handle, unsigned*, unsigned*), "nvmlDeviceGetMigMode")                                           \
  X(mig_max_count, Code(Handle, unsigned*), "nvmlDeviceGetMaxMigDeviceCount")                                       \
  X(mig_handle, Code(Handle, unsigned, Handle*), "nvmlDeviceGetMigDeviceHandleByIndex")                             \
  X(gpu_instance, Code(Handle, unsigned*), "nvmlDeviceGetGpuInstanceId")                                            \
  X(attributes, Code(Handle, Attributes*), "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes")                 \
  X(handle_by_uuid, Code(const char*, Handle*), "nvmlDeviceGetHandleByUUID")                                        \
  X(gpu_of_partition, Code(Handle, Handle*), "nvmlDeviceGetDeviceHandleFromMigDeviceHandle")                        \
  X(gpu_instance_profile, Code(Handle, unsigned, GpuInstanceProfile*), "nvmlDeviceGetGpuInstanceProfileInfo")       \
  X(gpu_instance_capacity, Code(Handle, unsigned, unsigned*), "nvmlDeviceGetGpuInstanceRemainingCapacity")          \
  X(create_gpu_instance, Code(Handle, unsigned, GpuInstance*), "nvmlDeviceCreateGpuInstance")                       \
  X(gpu_instance_by_id, Code(Handle, unsigned, GpuInstance*), "nvmlDeviceGetGpuInstanceById")                       \
  X(gpu_instance_info, Code(GpuInstance, GpuInstanceInfo*), "nvmlGpuInstanceGetInfo")                               \
  X(destroy_gpu_instance, Code(GpuInstance), "nvmlGpuInstanceDestroy")                                              \
  X(compute_instance_profile, Code(GpuInstance, unsigned, unsigned, ComputeInstanceProfile*),                       \
    "nvmlGpuInstanceGetComputeInstanceProfileInfo")                                                                 \
  X(create_compute_instance, Code(GpuInstance, unsigned, ComputeInstance*), "nvmlGpuInstanceCreateComputeInstance") \
  X(compute_instance, Code(Handle, unsigned*), "nvmlDeviceGetComputeInstanceId")                                    \
  X(compute_instance_by_id, Code(GpuInstance, unsigned, ComputeInstance*), "nvmlGpuInstanceGetComputeInstanceById") \
  X(destroy_compute_instance, Code(ComputeInstance), "nvmlComputeInstanceDestroy")                                  \
  X(event_set_create, Code(EventSet*), "nvmlEventSetCreate")                                                        \
  X(event_types, Code(Handle, uint64_t*), "nvmlDeviceGetSupportedEventTypes")                                       \
  X(register_events, Code(Handle, unsigned long long, EventSet), "nvmlDeviceRegisterEvents")                        \
  X(event_wait, Code(EventSet, EventData*, unsigned), "nvmlEventSetWait_v2", "nvmlEventSetWait")                    \
  X(gpm_support, Code(Handle, GpmSupport*), "nvmlGpmQueryDeviceSupport")                                            \
  X(gpm_alloc, Code(GpmSample*), "nvmlGpmSampleAlloc")                                                              \
  X(gpm_sample, Code(Handle, GpmSample), "nvmlGpmSampleGet")                                                        \
  X(gpm_sample_instance, Code(Handle, unsigned, GpmSample), "nvmlGpmMigSampleGet")                                  \
  X(gpm_metrics, Code(GpmRequest*), "nvmlGpmMetricsGet")                                                            \
  X(process_details, Code(), "nvmlDeviceGetRunningProcessDetailList")                                               \
  X(protected_memory_info, Code(), "nvmlDeviceGetConfComputeMemSizeInfo")

/// Null where this driver's library lacks the call. The last two are never called: their presence shows the layout of
/// ProcessInfo.
struct Lib {
#define REMUDA_NVML_FIELD(field, prototype, ...) std::add_pointer_t<prototype> field = nullptr;
  REMUDA_NVML_SYMBOLS(REMUDA_NVML_FIELD)
#undef REMUDA_NVML_FIELD
};

/// Opens the library for the rest of the process's life. The error says in one sentence why it cannot be opened.
Result<Lib> load_lib(const std::string& file);

}  // namespace remuda::probe::nvml

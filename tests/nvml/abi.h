// The part of NVML's binary interface that the test library implements: return codes, constants and struct layouts.
//
// Written from NVIDIA's header (NVIDIA/go-nvml, gen/nvml/nvml.h, API version 13) and deliberately separate from the
// declarations of remuda's own probe: an error in one of the two shows as a difference in the tests.
#pragma once

#include <cstdint>

namespace remuda::tests::nvml {

enum Code : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kVersionMismatch = 18,
  kInUse = 19,
  kInsufficientResources = 23,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

struct Gpu;
/// nvmlDevice_t of the interface.
using Handle = const Gpu*;

/// The version a caller writes into a versioned struct.
template <typename T>
constexpr unsigned version_of(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

inline constexpr unsigned long long kNotAvailable = ~0ull;
inline constexpr unsigned kNoInstance = ~0u;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct PciInfoExt {
  unsigned version;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
  char bus_id[32];
};
static_assert(sizeof(PciInfoExt) == 64);

struct Memory {
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);

struct Utilization {
  unsigned gpu, memory;
};

struct TemperatureV1 {
  unsigned version, sensor;
  int temperature;
};

struct Uuid {
  unsigned version, type;
  union {
    char text[41];
    unsigned char bytes[16];
  };
};
static_assert(sizeof(Uuid) == 52);

struct ProcessV1 {
  unsigned pid;
  unsigned long long used_memory;
};
static_assert(sizeof(ProcessV1) == 16);

struct ProcessV2 {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessV2) == 24);

/// Of the detail list, and of nvmlDeviceGetComputeRunningProcesses_v3 in some drivers of the 535 series.
struct ProcessDetail {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_memory;
};
static_assert(sizeof(ProcessDetail) == 32);

struct ProcessDetailList {
  unsigned version, mode, count;
  ProcessDetail* processes;
};

struct ProcessSample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessSample) == 32);

struct ProcessSampleV2 {
  unsigned long long time_us;
  unsigned pid, sm, memory, encoder, decoder, jpeg, optical_flow;
};
static_assert(sizeof(ProcessSampleV2) == 40);

struct ProcessSamples {
  unsigned version, count;
  unsigned long long last_seen_us;
  ProcessSampleV2* samples;
};

struct Attributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpeg, optical_flow, gpu_slices, compute_slices;
  unsigned long long memory_mb;
};
static_assert(sizeof(Attributes) == 40);

struct InstanceProfile {
  unsigned id, is_p2p_supported, slice_count, instance_count, multiprocessor_count;
  unsigned copy_engine_count, decoder_count, encoder_count, jpeg_count, ofa_count;
  unsigned long long memory_mb;
};
static_assert(sizeof(InstanceProfile) == 48);

struct Instance;
/// nvmlGpuInstance_t and nvmlComputeInstance_t of the interface.
using InstanceHandle = Instance*;
using ComputeHandle = struct Compute*;

struct InstanceInfo {
  Handle device;
  unsigned id, profile_id, placement_start, placement_size;
};
static_assert(sizeof(InstanceInfo) == 24);

struct ComputeProfile {
  unsigned id, slice_count, instance_count, multiprocessor_count;
  unsigned copy_engine_count, decoder_count, encoder_count, jpeg_count, ofa_count;
};
static_assert(sizeof(ComputeProfile) == 36);

struct ConfComputeMemory {
  unsigned long long protected_kib, unprotected_kib;
};

struct RemappedRowsV2 {
  unsigned corrected, corrected_inactive, uncorrected, uncorrected_inactive, pending, failed;
};

struct EventData {
  Handle device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);
inline constexpr unsigned long long kXidEvent = 8;

/// nvmlFieldValue_t.
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned value_type;
  Code code;
  union {
    double real;
    unsigned number;
    unsigned long long long_number;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr unsigned kRecoveryActionField = 230, kUnsignedValue = 1;

struct GpmSample;
struct GpmMetric {
  unsigned id;
  Code code;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40);

/// The length of its array depends on the caller's header: only the first `count` entries may be accessed.
struct GpmMetrics {
  unsigned version, count;
  GpmSample *first, *second;
  GpmMetric metrics[1];
};

struct GpmSupport {
  unsigned version, supported;
};

enum ClockType : unsigned { kGraphicsClock = 0, kSmClock = 1, kMemoryClock = 2 };
enum RemoteType : unsigned { kRemoteGpu = 0, kRemoteSwitch = 2 };
inline constexpr unsigned kMaxNvlinks = 36;

}  // namespace remuda::tests::nvml

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

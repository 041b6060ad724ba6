// The binary interface of libnvidia-ml.so.1, as far as remuda uses it: written from its public description (API 13)
// with our own names; sizes and offsets are checked here. Calls write into these structs; nothing here owns anything.
#pragma once

#include <cstddef>
#include <cstdint>

namespace remuda::probe::nvml {

/// What every call returns; an enum in the library. The values used here:
using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kUninitialized = 1;
inline constexpr Code kInvalidArgument = 2;
inline constexpr Code kNotSupported = 3;
inline constexpr Code kNoPermission = 4;
inline constexpr Code kNotFound = 6;
inline constexpr Code kInsufficientSize = 7;
inline constexpr Code kInsufficientPower = 8;
inline constexpr Code kDriverNotLoaded = 9;
inline constexpr Code kTimeout = 10;
inline constexpr Code kIrqIssue = 11;
inline constexpr Code kFunctionNotFound = 13;
inline constexpr Code kCorruptedInforom = 14;
inline constexpr Code kGpuIsLost = 15;
inline constexpr Code kResetRequired = 16;
inline constexpr Code kOperatingSystem = 17;
inline constexpr Code kVersionMismatch = 18;
inline constexpr Code kInUse = 19;
inline constexpr Code kNoData = 21;
inline constexpr Code kArgumentVersionMismatch = 25;
inline constexpr Code kNotReady = 27;
inline constexpr Code kGpuNotFound = 28;
inline constexpr Code kUnknown = 999;

/// Handles: pointers that only the library may follow. A handle from a call that failed must never be used.
using Handle = struct DeviceOpaque*;
using EventSet = struct EventSetOpaque*;
using GpmSample = struct GpmSampleOpaque*;
using GpuInstance = struct GpuInstanceOpaque*;
using ComputeInstance = struct ComputeInstanceOpaque*;

/// The version word of a struct that has one: its size and its version.
template <typename T>
constexpr unsigned version_word(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  char bus_id[32];  ///< set by version 3 of the calls; version 2 uses these bytes otherwise
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  unsigned version;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 && offsetof(MemoryV2, used) == 32);

struct Utilization {
  unsigned gpu, memory;  ///< percent
};
static_assert(sizeof(Utilization) == 8);

struct Temperature {
  unsigned version;
  unsigned sensor;
  int celsius;
};
static_assert(sizeof(Temperature) == 12);

/// A running process, in three layouts: the first 16 bytes, the first 24 (without `protected_memory`), or all.
struct ProcessInfo {
  unsigned pid;
  uint64_t used_memory;
  unsigned gpu_instance, compute_instance;
  uint64_t protected_memory;
};
static_assert(sizeof(ProcessInfo) == 32 && offsetof(ProcessInfo, used_memory) == 8 &&
              offsetof(ProcessInfo, gpu_instance) == 16 && offsetof(ProcessInfo, protected_memory) == 24);

struct ProcessSample {
  unsigned pid;
  uint64_t time_us;                       ///< since 1970
  unsigned sm, memory, encoder, decoder;  ///< percent
};
static_assert(sizeof(ProcessSample) == 32 && offsetof(ProcessSample, time_us) == 8 &&
              offsetof(ProcessSample, sm) == 16);

/// Version 1 of the call fills all except the instances.
struct EventData {
  Handle device;
  uint64_t type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance) == 24);

/// Version 1 of the call fills all except the memory.
struct Attributes {
  unsigned multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
  unsigned gpu_slices, compute_slices;
  uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, gpu_slices) == 24 &&
              offsetof(Attributes, memory_mib) == 32);

/// A size of instance that a GPU can be cut into.
struct GpuInstanceProfile {
  unsigned id, is_p2p_supported, slices, most, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
  uint64_t memory_mib;
};
static_assert(sizeof(GpuInstanceProfile) == 48 && offsetof(GpuInstanceProfile, memory_mib) == 40);

struct GpuInstanceInfo {
  Handle gpu;
  unsigned id, profile, first_slice, slices;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

/// A part of an instance's multiprocessors, which a device is made of.
struct ComputeInstanceProfile {
  unsigned id, slices, most, multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
};
static_assert(sizeof(ComputeInstanceProfile) == 36);

struct GpmSupport {
  unsigned version, supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct GpmMetric {
  unsigned id;
  Code code;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

/// The library's own array is longer (98 entries in its first version, 333 now); it uses the first `count` only.
struct GpmRequest {
  static constexpr size_t kMaxMetrics = 333;
  unsigned version, count;
  GpmSample earlier, later;
  GpmMetric metrics[kMaxMetrics];
};
static_assert(offsetof(GpmRequest, earlier) == 8 && offsetof(GpmRequest, metrics) == 24);

/// One of the values that have numbers in place of calls. The caller writes `id` and `scope`.
struct FieldValue {
  unsigned id, scope;
  int64_t timestamp_us, latency_us;
  unsigned type;  ///< of the value; one of 32 bits is in its first four bytes
  Code code;
  unsigned value, value_high;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, code) == 28 && offsetof(FieldValue, value) == 32);

inline constexpr unsigned kFieldRecoveryAction = 230, kFieldTypeUnsigned = 1;
inline constexpr unsigned kWholeGpu = 0xFFFFFFFF;  ///< in place of an instance's id
inline constexpr unsigned kChipSensor = 0, kClockSm = 1, kClockMemory = 2;
inline constexpr unsigned kEccCorrected = 0, kEccUncorrected = 1, kEccSinceLoad = 0;
inline constexpr unsigned kScopeNode = 0;
inline constexpr unsigned kPeerRead = 0, kPeerWrite = 1, kPeerNvlink = 2;
inline constexpr unsigned kRemoteGpu = 0, kRemoteSwitch = 2, kRemoteUnknown = 0xFF;
inline constexpr unsigned kMaxNvLinks = 36;
/// Profiles of instances have numbers below these, and not all of them are given.
inline constexpr unsigned kGpuInstanceProfiles = 32, kComputeInstanceProfiles = 16;
inline constexpr unsigned kSharedEngines = 0;  ///< of a compute instance
inline constexpr uint64_t kEventXid = 0x8;
inline constexpr unsigned kGpmSmActive = 2, kGpmSmOccupancy = 3, kGpmTensorActive = 5, kGpmDramActive = 10;

}  // namespace remuda::probe::nvml

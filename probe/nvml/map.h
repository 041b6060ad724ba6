// From NVML's values to ours. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "probe/nvml/abi.h"

namespace remuda::probe::nvml {

/// Why a call failed: "power: not offered by this device". `what` names the reading.
Missing why(Code code, std::string_view what);
/// The same for a call that this driver's library does not have.
Missing no_call(std::string_view what);
/// The same for an answer that cannot be interpreted.
Missing no_sense(std::string_view what);

/// The address in a PciInfo, or nothing when it holds none.
std::optional<std::string> address_of(const PciInfo& pci);

/// Of nvmlDeviceGetTopologyCommonAncestor.
Reading<Path> path_of(unsigned level);
/// Of nvmlDeviceGetP2PStatus.
PeerAccess peer_access_of(unsigned status);
/// Of nvmlDeviceGetComputeMode.
Reading<ComputeMode> compute_mode_of(unsigned mode);
/// Of the field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION.
RecoveryAction recovery_action_of(unsigned action);

/// Of nvmlDeviceGetCurrentClocksEventReasons: the words of Status::throttle.
std::vector<std::string> throttle_reasons_of(uint64_t bits);
/// Of nvmlSystemGetCudaDriverVersion: 12040 -> "12.4".
Reading<std::string> runtime_version_of(int version);

/// CUDA's compute capability: the features of a chip, which also identify it.
struct Capability {
  int major = 0, minor = 0;
};

/// Of nvmlDeviceGetArchitecture; nothing for one that is newer than this list.
std::optional<std::string> architecture_name(unsigned architecture);
/// The same by compute capability.
std::optional<std::string> architecture_name(Capability capability);
/// Cores in a multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities"); nothing for an unknown chip.
std::optional<int> cores_per_multiprocessor(Capability capability);

/// The generation of an NVLink. It follows from the chip: each has links of one generation. The driver's own number
/// (nvmlDeviceGetNvLinkVersion) is used only where the chip is not known, and only for values on which documentation
/// and drivers agree: 4 should be 3.0 and 6 should be 4.0, but an A100 answers 5, an RTX A6000 6 (open-mpi/hwloc#658,
/// NVIDIA/TensorRT-LLM#1467).
std::optional<int> nvlink_generation(std::optional<Capability> capability, unsigned version);

/// The size of a partition as the driver names it, "3g.20gb" or "1c.3g.20gb": slices, and the share of the GPU's memory
/// in eighths, in whole GB. `memory_bytes` is the GPU's.
std::optional<std::string> profile_of(const Attributes& attributes, int64_t memory_bytes);
/// The same of one that could be made.
std::optional<std::string> profile_name(const GpuInstanceProfile& profile, int64_t memory_bytes);

}  // namespace remuda::probe::nvml

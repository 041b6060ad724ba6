// What a device is: board, brand, architecture, PCI address, modes, affinity.
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <strings.h>

#include "tests/nvml/answer.h"
#include "tests/nvml/pci.h"

namespace remuda::tests::nvml {
namespace {

struct Address {
  unsigned domain = 0, bus = 0, device = 0;
};

Address address_of(const std::string& text) {
  Address address;
  const char* at = text.data();
  const char* end = at + text.size();
  for (unsigned* part : {&address.domain, &address.bus, &address.device}) {
    at = std::from_chars(at, end, *part, 16).ptr;
    if (at != end) ++at;
  }
  return address;
}

template <typename T>
void fill(const std::string& pci, T& info) {
  const Address address = address_of(pci);
  info.domain = address.domain;
  info.bus = address.bus;
  info.device = address.device;
  info.pci_device_id = 0x10de;
  info.pci_subsystem_id = 0;
}

void fill_legacy(const std::string& pci, PciInfo& info) {
  fill(pci, info);
  const std::string text = fmt::format("{:04X}:{:02X}:{:02X}.0", info.domain & 0xffff, info.bus, info.device);
  give_text(text, info.bus_id_legacy, sizeof info.bus_id_legacy);
}

const Reading<std::string>& pci_of(const Gpu& gpu) { return (gpu.parent ? *gpu.parent : gpu).device.pci; }

template <typename T>
Code give_pci(Handle handle, T* info, void (*fill_in)(const std::string&, T&)) {
  return ask(handle, info, [&](const Gpu& gpu) {
    const Reading<std::string>& pci = pci_of(gpu);
    if (!pci.has_value()) return code_of(pci.missing());
    fill_in(pci.value(), *info);
    return kSuccess;
  });
}

/// Sets bit n of the mask for each number n that fits.
Code give_mask(const std::vector<int>& numbers, unsigned size, unsigned long* mask) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  if (size == 0) return kInvalidArgument;
  std::fill_n(mask, size, 0ul);
  for (const int number : numbers)
    if (number >= 0 && static_cast<unsigned>(number) / kBits < size) mask[number / kBits] |= 1ul << number % kBits;
  return kSuccess;
}

Code give_cores(Handle handle, unsigned size, unsigned long* mask) {
  return ask(handle, mask, [&](const Gpu& gpu) {
    const Reading<std::vector<int>>& cores = gpu.device.cores;
    return cores.has_value() ? give_mask(cores.value(), size, mask) : code_of(cores.missing());
  });
}

/// Cores in a multiprocessor, from the compute capability (CUDA C++ Programming Guide, "Compute Capabilities").
unsigned cores_per_multiprocessor(const std::string& capability) {
  const bool is_small = capability == "6.0" || capability == "8.0" || capability.starts_with("7.");
  return is_small ? 64 : 128;
}

unsigned brand_of(const std::string& model) {
  constexpr unsigned kUnknownBrand = 0;
  constexpr std::array brands{std::pair{"Tesla", 2u},        std::pair{"Quadro RTX", 12u}, std::pair{"Quadro", 1u},
                              std::pair{"GeForce RTX", 15u}, std::pair{"GeForce", 5u},     std::pair{"TITAN", 6u},
                              std::pair{"NVIDIA RTX", 13u},  std::pair{"NVIDIA", 14u}};
  for (const auto& [word, brand] : brands)
    if (model.find(word) != std::string::npos) return brand;
  return kUnknownBrand;
}

}  // namespace

void fill_pci(const std::string& pci, PciInfo& info) {
  fill_legacy(pci, info);
  give_text(fmt::format("{:08X}:{:02X}:{:02X}.0", info.domain, info.bus, info.device), info.bus_id, sizeof info.bus_id);
}

NVML_EXPORT Code nvmlDeviceGetPciInfo(Handle handle, PciInfo* info) { return give_pci(handle, info, fill_legacy); }
NVML_EXPORT Code nvmlDeviceGetPciInfo_v2(Handle handle, PciInfo* info) { return give_pci(handle, info, fill_legacy); }
NVML_EXPORT Code nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* info) { return give_pci(handle, info, fill_pci); }

NVML_EXPORT Code nvmlDeviceGetPciInfoExt(Handle handle, PciInfoExt* info) {
  if (info && info->version != version_of<PciInfoExt>(1)) return kArgumentVersionMismatch;
  return give_pci<PciInfoExt>(handle, info, [](const std::string& pci, PciInfoExt& info) {
    fill(pci, info);
    info.base_class = 3;
    info.sub_class = 2;
    give_text(fmt::format("{:08X}:{:02X}:{:02X}.0", info.domain, info.bus, info.device), info.bus_id,
              sizeof info.bus_id);
  });
}

NVML_EXPORT Code nvmlDeviceGetBoardId(Handle handle, unsigned* board) {
  return ask(handle, board, [&](const Gpu& gpu) {
    const Address address = address_of(pci_of(gpu).value_or(""));
    *board = address.domain << 16 | address.bus << 8 | address.device;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetBrand(Handle handle, unsigned* brand) {
  return ask(handle, brand, [&](const Gpu& gpu) {
    *brand = brand_of(gpu.device.model);
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetArchitecture(Handle handle, unsigned* architecture) {
  constexpr std::array known{std::pair{"kepler", 2u}, std::pair{"maxwell", 3u}, std::pair{"pascal", 4u},
                             std::pair{"volta", 5u},  std::pair{"turing", 6u},  std::pair{"ampere", 7u},
                             std::pair{"ada", 8u},    std::pair{"hopper", 9u},  std::pair{"blackwell", 10u},
                             std::pair{"rubin", 13u}};
  return ask(handle, architecture, [&](const Gpu& gpu) {
    const Reading<std::string>& name = gpu.device.architecture;
    if (!name.has_value()) return code_of(name.missing());
    *architecture = ~0u;
    for (const auto& [word, number] : known)
      if (::strcasecmp(name.value().c_str(), word) == 0) *architecture = number;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  return ask(handle, all(major, minor), [&](const Gpu& gpu) {
    const Reading<std::string>& capability = gpu.device.compute_capability;
    if (!capability.has_value()) return code_of(capability.missing());
    const std::string& text = capability.value();
    const char* end = text.data() + text.size();
    const char* dot = std::from_chars(text.data(), end, *major).ptr;
    if (dot == end || std::from_chars(dot + 1, end, *minor).ec != std::errc{}) return kUnknown;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetNumGpuCores(Handle handle, unsigned* cores) {
  return ask(handle, cores, [&](const Gpu& gpu) {
    const Code code = give(gpu.device.multiprocessors, cores);
    if (code == kSuccess) *cores *= cores_per_multiprocessor(gpu.device.compute_capability.value_or(""));
    return code;
  });
}

NVML_EXPORT Code nvmlDeviceGetComputeMode(Handle handle, unsigned* mode) {
  constexpr unsigned kDefault = 0, kProhibited = 2, kExclusiveProcess = 3;
  return ask(handle, mode, [&](const Gpu& gpu) {
    const Reading<ComputeMode>& known = gpu.device.compute_mode;
    if (!known.has_value()) return code_of(known.missing());
    *mode = known.value() == ComputeMode::shared      ? kDefault
            : known.value() == ComputeMode::exclusive ? kExclusiveProcess
                                                      : kProhibited;
    return kSuccess;
  });
}

NVML_EXPORT Code nvmlDeviceGetPersistenceMode(Handle handle, unsigned* enabled) {
  return ask(handle, enabled, [&](const Gpu& gpu) { return give(gpu.device.persistence, enabled); });
}

NVML_EXPORT Code nvmlDeviceGetCpuAffinity(Handle handle, unsigned size, unsigned long* mask) {
  return give_cores(handle, size, mask);
}

NVML_EXPORT Code nvmlDeviceGetCpuAffinityWithinScope(Handle handle, unsigned size, unsigned long* mask, unsigned) {
  return give_cores(handle, size, mask);
}

NVML_EXPORT Code nvmlDeviceGetMemoryAffinity(Handle handle, unsigned size, unsigned long* mask, unsigned) {
  return ask(handle, mask, [&](const Gpu& gpu) {
    const Reading<int>& node = gpu.device.numa_node;
    return node.has_value() ? give_mask({node.value()}, size, mask) : code_of(node.missing());
  });
}

/// Only where the GPU is a NUMA node itself; the node nearest to a GPU is its memory affinity.
NVML_EXPORT Code nvmlDeviceGetNumaNodeId(Handle handle, unsigned* node) {
  return ask(handle, node, [](const Gpu&) { return kNotSupported; });
}

}  // namespace remuda::tests::nvml

// A Lib of plain functions over a made-up machine, for the tests of this folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probe/nvml/lib.h"

namespace remuda::probe::nvml::fake {

struct NvLink {
  unsigned active = 1;
  unsigned type = kRemoteUnknown;
  std::string pci;  ///< empty: the driver does not report it
  unsigned version = 5;
};

struct Gpu {
  std::string uuid, name = "NVIDIA A100-SXM4-40GB";
  PciInfo pci{};
  Code open = kSuccess;             ///< the result of opening it
  Code answers = kSuccess;          ///< the result of most calls
  void (*on_question)() = nullptr;  ///< called in the process first
  void (*on_open)() = nullptr;
  uint64_t memory_mib = 40960;
  std::vector<unsigned long> cores{0xF};
  std::vector<NvLink> nvlinks;
  std::map<size_t, unsigned> paths, peer_read, peer_write, peer_nvlink;  ///< by index of the other GPU
  std::vector<ProcessInfo> compute, graphics, mps;
  std::vector<ProcessSample> samples;
  std::vector<EventData> events;
  FieldValue recovery{.type = kFieldTypeUnsigned};  ///< the result of the call for the recovery action
  bool mig = false;
  std::vector<Gpu> partitions;
  std::vector<GpuInstanceProfile> profiles;  ///< by their numbers; one without slices is none
  unsigned instance = kWholeGpu, slices = 0;
};

struct Machine {
  Code init = kSuccess;
  std::vector<Gpu> gpus;
  size_t record_size = 24;  ///< of process records
};

/// The one machine that the functions below describe. A forked child has its own copy.
Machine& machine();

/// A GPU at bus `bus` with the UUID "GPU-aaaa-BUS".
Gpu gpu(unsigned bus);
PciInfo pci_info(unsigned bus);

/// Every call of a new driver.
Lib new_driver();
/// Calls of a driver that is some years old: about half of them.
Lib old_driver();

}  // namespace remuda::probe::nvml::fake

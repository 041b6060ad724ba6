// HostFacts: what the checks need besides the inventory. Plain data. A fact that is not needed is not read; for a
// recorded machine, none is.
//
// The child process that searches for software sends it as JSON by its fields(), as with the structs of device/.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "device/reading.h"

namespace remuda::doctor {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

/// An installed PyTorch, as its files describe it; it is never started.
struct Torch {
  std::string folder;                         ///< .../site-packages/torch
  std::string version;                        ///< 2.5.1+cu124
  std::string cuda, hip;                      ///< the runtime it is built with, 12.4; empty: built without
  Reading<std::vector<std::string>> targets;  ///< what it holds code for: sm_80, compute_90, gfx90a

  static constexpr const char* kName = "torch";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("folder", self.folder, "where it is");
    visit("version", self.version, "its version");
    visit("cuda", self.cuda, "version of the CUDA runtime it is built with");
    visit("hip", self.hip, "version of the HIP runtime it is built with");
    visit("targets", self.targets, "GPU architectures it holds code for");
  }
};

/// A library of collectives.
struct Library {
  std::string path;
  Reading<std::string> version;

  static constexpr const char* kName = "library";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("path", self.path, "where it is");
    visit("version", self.version, "its version");
  }
};

struct Software {
  Reading<Torch> torch;
  Reading<Library> nccl, rccl;

  static constexpr const char* kName = "software";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("torch", self.torch, "the PyTorch that python3 would import");
    visit("nccl", self.nccl, "NVIDIA's collectives");
    visit("rccl", self.rccl, "AMD's collectives");
  }
};

/// How the kernel treats one GPU and the PCIe switches above it.
struct GpuSlot {
  std::string pci;
  Reading<std::string> bound_driver;                ///< empty: none
  Reading<bool> iommu_translates;                   ///< its addresses go through a table of the IOMMU
  Reading<std::vector<std::string>> acs_redirects;  ///< switch ports above it that send peer traffic to the root
};

/// A device file a GPU is used through.
struct DeviceFile {
  std::string path;
  bool usable = false;  ///< this user may read and write it
  std::string group;    ///< that owns it
};

/// How the jobs that this user starts are confined.
struct JobConfinement {
  int cgroup = 0;         ///< version of the cgroup each gets; 0: none
  bool devices = false;   ///< they cannot open devices that they were not granted
  std::string obstacle;   ///< a clause: why not all of it is in force
  bool by_agent = false;  ///< an agent that is root does it, and none of the above is known
};

/// The pool that this user's jobs are in, and whether other users share it.
struct PoolUse {
  std::string folder;            ///< of that pool
  std::string obstacle, remedy;  ///< what keeps this user out of the pool for all users; empty: nothing
  bool is_shared = false;        ///< it is the one for all users
};

struct HostFacts {
  Software software;
  Reading<std::vector<GpuSlot>> slots;
  Reading<std::vector<DeviceFile>> device_files;
  Reading<std::vector<int>> gone_pids;  ///< of the inventory's processes, those that no longer live
  Reading<std::vector<int>> cores;      ///< logical CPUs this process may run on
  Reading<std::string> device_order;    ///< CUDA_DEVICE_ORDER; empty: not set
  Reading<bool> sharing_daemon;         ///< a daemon that lets processes share NVIDIA GPUs runs
  Reading<bool> container;
  Reading<bool> host_pids;         ///< this process sees the host's process ids
  Reading<int64_t> shm_bytes;      ///< size of /dev/shm
  Reading<int64_t> memlock_bytes;  ///< memory this process may lock, or kUnlimited
  Reading<JobConfinement> confinement;
  Reading<PoolUse> pool;
  Reading<int64_t> open_files;  ///< files this process may have open, or kUnlimited
};

}  // namespace remuda::doctor

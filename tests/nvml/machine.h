// Machine: a recorded inventory, presented as NVML presents a machine. Immutable once made, so any thread may read it.
//
// Values that every real GPU has and a recording may lack are derived from the GPU's number N, always the same: uuid
// GPU-00000000-0000-0000-0000-00000000000N, PCI address 0000:(10+N):00.0 (hexadecimal), 24 GiB of memory, none of it in
// use, the name "Test GPU". Any other missing reading gives the error code of its reason.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "tests/nvml/abi.h"

namespace remuda::tests::nvml {

/// One NVLink of a GPU: where it leads.
struct Port {
  RemoteType type = kRemoteGpu;
  std::string pci;  ///< of the remote end
  Reading<int> version;
  bool active = true;
};

/// As the machine's file has a MIG instance without a compute instance, which is no device: its id begins so.
inline constexpr std::string_view kEmptyInstance = "empty instance ";

/// A GPU, or a MIG instance of one. Its address is its handle.
struct Gpu {
  Device device;
  int index = 0;                ///< of an instance: among those of its GPU
  const Gpu* parent = nullptr;  ///< of an instance: its GPU
  std::vector<std::unique_ptr<Gpu>> instances;
  std::vector<Port> ports;
  unsigned gpu_instance = kNoInstance;
  unsigned compute_instance = kNoInstance;
  bool is_empty() const { return device.id.starts_with(kEmptyInstance); }
};

class Machine {
 public:
  /// A usage error when the file is not an inventory.
  static Result<std::unique_ptr<Machine>> load(const std::string& path);
  /// Serves the GPUs that are of this library's vendor or of none.
  explicit Machine(Inventory inventory);

  const std::vector<std::unique_ptr<Gpu>>& gpus() const { return gpus_; }
  /// The recorded link of two GPUs; nothing when there is none.
  const Link* link(const Gpu& a, const Gpu& b) const;
  /// Versions, made up where the recording has none.
  const Driver& driver() const { return driver_; }
  bool owns(Handle handle) const;

 private:
  Inventory inventory_;
  Driver driver_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace remuda::tests::nvml

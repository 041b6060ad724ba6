// LiveMachine: the machine this process runs on, as an inventory.
//
//   REMUDA_ASSIGN(const Inventory inventory, probe::LiveMachine({}).read());
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "probe/probe.h"

namespace remuda::probe {

struct ProbeOptions {
  /// CPU devices to make in all: 0 = one per NUMA node. More than that splits the nodes' cores evenly.
  int cpu_devices = 0;
};

/// The machine this process runs on, seen by every probe that is viable. Not for several threads at once.
class LiveMachine {
 public:
  explicit LiveMachine(const ProbeOptions& options);
  /// By other probes; what the first of them read of a device counts.
  static LiveMachine seen_by(std::vector<std::unique_ptr<Probe>> probes);
  /// Reads the current state.
  Result<Inventory> read();

 private:
  std::vector<std::unique_ptr<Probe>> probes_;
};

/// Makes a partition of a GPU that is cut into such, of a size that it offers (Device::offers), and returns its UUID.
/// For a process of its own: it may hang with the driver. No GPU's mode is changed.
Result<std::string> make_partition(const std::string& gpu_uuid, const std::string& profile);
/// The same of one that goes; an error where a process uses it.
Result<void> remove_partition(const std::string& uuid);
/// The instances that a GPU is cut into, by their numbers: the UUID of the partition; empty where one is no device, as
/// a process that made or took away a partition was killed. Also for a process of its own.
Result<std::map<unsigned, std::string>> partition_instances(const std::string& gpu_uuid);
/// Takes one away that is no device.
Result<void> remove_empty_instance(const std::string& gpu_uuid, unsigned number);

}  // namespace remuda::probe

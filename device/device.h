// Device: one CPU, GPU or part of a GPU; what it is (Device) and how it is doing (Status). Plain data.
//
// Each struct lists its fields once, in fields(): the key in JSON, the member, and what it means. Writing, reading, the
// JSON schema and its documentation all follow that list, so the sentences there are the reference of the format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/reading.h"
#include "device/words.h"

namespace remuda {

enum class DeviceKind {
  cpu,        ///< a set of cores
  gpu,        ///< a whole GPU
  partition,  ///< a part of a GPU that the driver offers as a device of its own
};
template <>
struct Words<DeviceKind> {
  static constexpr std::array table{std::pair{DeviceKind::cpu, "cpu"}, std::pair{DeviceKind::gpu, "gpu"},
                                    std::pair{DeviceKind::partition, "partition"}};
};

enum class ComputeMode { shared, exclusive, prohibited };
template <>
struct Words<ComputeMode> {
  static constexpr std::array table{std::pair{ComputeMode::shared, "shared"},
                                    std::pair{ComputeMode::exclusive, "exclusive"},
                                    std::pair{ComputeMode::prohibited, "prohibited"}};
};

/// What the driver asks for, so that a device works as it should again.
enum class RecoveryAction {
  none,
  reset,            ///< end what runs there and reset the device
  reboot,           ///< restart the machine
  drain_peers,      ///< end all traffic between devices first; then it asks for another one
  drain_and_reset,  ///< what runs may go on, nothing new may start, then reset the device
  other,            ///< something that remuda does not know
};
template <>
struct Words<RecoveryAction> {
  static constexpr std::array table{std::pair{RecoveryAction::none, "none"},
                                    std::pair{RecoveryAction::reset, "reset"},
                                    std::pair{RecoveryAction::reboot, "reboot"},
                                    std::pair{RecoveryAction::drain_peers, "drain_peers"},
                                    std::pair{RecoveryAction::drain_and_reset, "drain_and_reset"},
                                    std::pair{RecoveryAction::other, "other"}};
};

inline constexpr bool kRequired = true;  ///< last argument of a field that must be there

/// A process that uses a device.
struct Process {
  int pid = 0;
  std::string type;
  Reading<std::string> user, command;
  Reading<int64_t> memory_bytes;
  Reading<double> busy;
  Reading<double> start_time_s;

  static constexpr const char* kName = "process";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("pid", self.pid, "process id in the host's namespace", kRequired);
    visit("type", self.type, "what it does there: compute, graphics or shared (through a sharing daemon)");
    visit("user", self.user, "login name of its owner");
    visit("command", self.command, "its command line, without control characters, at most 200 bytes");
    visit("memory_bytes", self.memory_bytes, "device memory it holds");
    visit("busy", self.busy, "share of the device's time it used lately, 0 to 1");
    visit("start_time_s", self.start_time_s, "when it started, in seconds since 1970");
  }
  bool operator==(const Process&) const = default;
};

/// What changes while a machine runs.
struct Status {
  Reading<int64_t> memory_used_bytes, memory_reserved_bytes;
  Reading<double> busy, memory_busy;
  Reading<double> sm_active, sm_occupancy, tensor_active, dram_active;
  Reading<double> power_watts, energy_joules, temperature_c;
  Reading<int> sm_clock_mhz, memory_clock_mhz;
  Reading<std::vector<std::string>> throttle;
  Reading<int64_t> ecc_corrected, ecc_uncorrected, remapped_rows;
  Reading<bool> remap_pending, remap_failed;
  Reading<int> pcie_generation, pcie_width;
  Reading<int> xid;
  Reading<RecoveryAction> recovery_action;
  Reading<std::vector<Process>> processes;

  static constexpr const char* kName = "status";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("memory_used_bytes", self.memory_used_bytes, "memory in use, without what the driver reserves");
    visit("memory_reserved_bytes", self.memory_reserved_bytes, "memory the driver keeps for itself");
    visit("busy", self.busy, "share of the last second in which at least one kernel ran, 0 to 1; 1 does not mean full");
    visit("memory_busy", self.memory_busy, "share of the last second in which device memory was read or written");
    visit("sm_active", self.sm_active, "share of multiprocessors with work, 0 to 1, from the profiling counters");
    visit("sm_occupancy", self.sm_occupancy, "share of the warps a multiprocessor can hold that were there");
    visit("tensor_active", self.tensor_active, "share of time in which the tensor cores worked");
    visit("dram_active", self.dram_active, "share of the memory bandwidth in use");
    visit("power_watts", self.power_watts, "power drawn");
    visit("energy_joules", self.energy_joules, "energy used since the driver was loaded");
    visit("temperature_c", self.temperature_c, "temperature of the chip, degrees Celsius");
    visit("sm_clock_mhz", self.sm_clock_mhz, "clock of the multiprocessors");
    visit("memory_clock_mhz", self.memory_clock_mhz, "clock of the memory");
    visit("throttle", self.throttle,
          "why clocks are held down: idle, application_clocks, power_cap, hardware, sync_boost, thermal, "
          "hardware_thermal, power_brake, display, other");
    visit("ecc_corrected", self.ecc_corrected, "memory errors corrected since the driver was loaded");
    visit("ecc_uncorrected", self.ecc_uncorrected, "memory errors not corrected since the driver was loaded");
    visit("remapped_rows", self.remapped_rows, "memory rows replaced by spare ones over the card's life");
    visit("remap_pending", self.remap_pending, "a row is to be replaced at the next reset");
    visit("remap_failed", self.remap_failed, "a row could not be replaced: the card needs repair");
    visit("pcie_generation", self.pcie_generation, "PCIe generation now; idle GPUs lower it");
    visit("pcie_width", self.pcie_width, "PCIe lanes now");
    visit("xid", self.xid, "the driver's code of the last fatal error seen while watching; 0 = none");
    visit("recovery_action", self.recovery_action,
          "what the driver asks for after an error: none, reset, reboot, drain_peers, drain_and_reset or other");
    visit("processes", self.processes, "processes that use the device");
  }
  bool operator==(const Status&) const = default;
};

/// A size of partition that a GPU can be cut into.
struct PartitionOffer {
  std::string profile;
  int64_t memory_bytes = 0;
  int multiprocessors = 0, free = 0, most = 0;

  static constexpr const char* kName = "partition_offer";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("profile", self.profile, "its size as the driver names it, 3g.20gb", kRequired);
    visit("memory_bytes", self.memory_bytes, "memory that such a partition has");
    visit("multiprocessors", self.multiprocessors, "multiprocessors or compute units that it has");
    visit("free", self.free, "how many can be made now, beside the partitions that are there");
    visit("most", self.most, "how many can be made while there are none");
  }
  bool operator==(const PartitionOffer&) const = default;
};

struct Device {
  std::string id;
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  std::string vendor, model;
  std::string parent;
  Reading<std::string> profile;
  Reading<std::string> uuid, serial, pci, pcie_root;
  Reading<int> minor;
  Reading<std::string> architecture, compute_capability;
  Reading<std::vector<int>> cores;
  Reading<int> numa_node;
  Reading<int64_t> memory_bytes;
  Reading<int> multiprocessors;
  Reading<int> pcie_generation_max, pcie_generation_card, pcie_width_max;
  Reading<double> power_limit_watts, power_limit_max_watts;
  Reading<int> sm_clock_max_mhz, memory_clock_max_mhz;
  Reading<bool> partitioned, persistence, ecc;
  Reading<std::vector<PartitionOffer>> offers;
  Reading<ComputeMode> compute_mode;
  Status status;

  /// What people call it in tables and on the command line: "gpu:0".
  std::string label() const;

  static constexpr const char* kName = "device";
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit& visit) {
    visit("id", self.id, "names the device for ever: its UUID, else its PCI address, else kind:index", kRequired);
    visit("kind", self.kind, "cpu: a set of cores; gpu: a whole GPU; partition: a part of one", kRequired);
    visit("index", self.index,
          "position among the devices of its kind, in the order of PCI addresses; may change with hardware and driver",
          kRequired);
    visit("vendor", self.vendor, "who made it");
    visit("model", self.model, "its name, as the driver reports it");
    visit("parent", self.parent, "of a partition: the id of its GPU");
    visit("profile", self.profile, "of a partition: its size as the driver names it, 3g.20gb");
    visit("uuid", self.uuid, "the driver's UUID");
    visit("serial", self.serial, "serial number of the board; recorded only when asked for");
    visit("pci", self.pci, "PCI address, 0000:27:00.0");
    visit("pcie_root", self.pcie_root, "PCI root it hangs on, pci0000:20");
    visit("minor", self.minor, "number of its device file");
    visit("architecture", self.architecture, "name of the chip's generation or target");
    visit("compute_capability", self.compute_capability, "major.minor, where the vendor has such a number");
    visit("cores", self.cores, "logical CPUs: a CPU device's own, or those nearest to a GPU");
    visit("numa_node", self.numa_node, "NUMA node it belongs to");
    visit("memory_bytes", self.memory_bytes, "memory of the device; of a CPU, its part of its node's memory");
    visit("multiprocessors", self.multiprocessors, "multiprocessors or compute units");
    visit("pcie_generation_max", self.pcie_generation_max, "highest PCIe generation of card and slot together");
    visit("pcie_generation_card", self.pcie_generation_card, "highest PCIe generation of the card");
    visit("pcie_width_max", self.pcie_width_max, "PCIe lanes of card and slot together");
    visit("power_limit_watts", self.power_limit_watts, "power limit in force");
    visit("power_limit_max_watts", self.power_limit_max_watts, "highest power limit that can be set");
    visit("sm_clock_max_mhz", self.sm_clock_max_mhz, "highest clock of the multiprocessors");
    visit("memory_clock_max_mhz", self.memory_clock_max_mhz, "highest clock of the memory");
    visit("partitioned", self.partitioned, "the GPU is cut into partitions and cannot be used whole");
    visit("offers", self.offers, "of a GPU that is cut into partitions: the sizes that it can be cut into");
    visit("persistence", self.persistence, "the driver stays loaded while nobody uses the GPU");
    visit("ecc", self.ecc, "memory errors are detected and corrected");
    visit("compute_mode", self.compute_mode, "how many processes may use it: shared, exclusive or prohibited");
    visit("status", self.status, "what changes while the machine runs");
  }
  bool operator==(const Device&) const = default;
};

}  // namespace remuda

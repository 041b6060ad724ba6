// The machine a subcommand works on: the live one, or with --machine a recorded one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/inventory.h"
#include "probe/live_machine.h"

namespace remuda::cli {

struct MachineFlags {
  std::string file;        ///< empty: the live machine
  int cpu_devices = 0;     ///< as in ProbeOptions
  bool asks_agent = true;  ///< the live machine, where an agent keeps this user from its devices
};

inline constexpr int kMostCpuDevices = 4096;

/// N of "cpu:N"; nothing for anything else, and for a number that is too large.
std::optional<int> cpu_index(std::string_view id);

/// Declares --machine FILE and --cpu-devices N. `flags` must live as long as the command's action.
void add_machine_options(CLI::App& command, MachineFlags& flags);

/// The inventory asked for, read once. A file may be an inventory (`remuda record`, `remuda list --json`) or anything
/// `remuda import` understands. The live machine has the figures that `remuda bench links` measured.
Result<Inventory> read_machine(const MachineFlags& flags);

/// Reads one machine repeatedly, and keeps its probes open: so the second of two readings shows an error that a device
/// reported between them. In a forked process it starts with new probes. One thread.
class MachineReader {
 public:
  explicit MachineReader(MachineFlags flags);
  Result<Inventory> read();

 private:
  const MachineFlags flags_;
  std::unique_ptr<probe::LiveMachine> live_;
  int owner_ = 0;  ///< the process that has made it
};

/// The model's name; where it is not known, the vendor: "NVIDIA, model unknown".
std::string model_text(const Device& device);

/// Nothing for the live machine; otherwise the sentence that says that `what` ("training") needs the live one.
Result<void> require_live(const MachineFlags& flags, const std::string& what);

}  // namespace remuda::cli

// The machine a subcommand works on: the live one, or with --machine a recorded one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::cli {

struct MachineFlags {
  std::string file;     ///< empty: the live machine
  int cpu_devices = 0;  ///< as in ProbeOptions
};

inline constexpr int kMostCpuDevices = 4096;

/// N of "cpu:N"; nothing for anything else, and for more than there may be.
std::optional<int> cpu_index(std::string_view id);

/// Declares --machine FILE and --cpu-devices N. `flags` must live as long as the command's action.
void add_machine_options(CLI::App& command, MachineFlags& flags);

/// The inventory asked for. A file may be an inventory (`remuda record`, `remuda list --json`) or anything
/// `remuda import` understands. The live machine carries what `remuda bench links` measured of it.
Result<Inventory> read_machine(const MachineFlags& flags);

/// Nothing for the live machine; otherwise the sentence that says that `what` ("training") needs the live one.
Result<void> require_live(const MachineFlags& flags, const std::string& what);

}  // namespace remuda::cli

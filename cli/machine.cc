#include "cli/machine.h"

#include <fmt/format.h>

#include "base/number.h"
#include "measure/store.h"
#include "probe/live_machine.h"
#include "recorded/import.h"

namespace remuda::cli {
namespace {

Result<Inventory> read_live(int cpu_devices) {
  REMUDA_ASSIGN(Inventory inventory, probe::LiveMachine({.cpu_devices = cpu_devices}).read());
  if (const auto loaded = measure::load_measured(inventory); !loaded) inventory.notes.push_back(loaded.error().message);
  return inventory;
}

}  // namespace

std::optional<int> cpu_index(std::string_view id) {
  constexpr std::string_view kPrefix = "cpu:";
  if (!id.starts_with(kPrefix)) return std::nullopt;
  const auto index = parse_number<int>(id.substr(kPrefix.size()));
  return index && *index >= 0 && *index < kMostCpuDevices ? index : std::nullopt;
}

void add_machine_options(CLI::App& command, MachineFlags& flags) {
  auto* file = command.add_option("--machine", flags.file, "A recorded machine in place of this one");
  command.add_option("--cpu-devices", flags.cpu_devices, "Split the CPU into this many devices")
      ->check(CLI::Range(1, kMostCpuDevices))
      ->excludes(file);
}

Result<Inventory> read_machine(const MachineFlags& flags) {
  return flags.file.empty() ? read_live(flags.cpu_devices) : recorded::read_machine_file(flags.file);
}

Result<void> require_live(const MachineFlags& flags, const std::string& what) {
  if (flags.file.empty()) return {};
  return usage_error(fmt::format("{} needs the machine itself; {} is a recording", what, flags.file));
}

}  // namespace remuda::cli

#include "cli/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/number.h"
#include "measure/store.h"
#include "recorded/import.h"

namespace remuda::cli {
namespace {

Result<Inventory> read_live(probe::LiveMachine& machine) {
  REMUDA_ASSIGN(Inventory inventory, machine.read());
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
  auto* file =
      command.add_option("--machine", flags.file, "A recorded machine in place of this one")->type_name("FILE");
  command.add_option("--cpu-devices", flags.cpu_devices, "Split the CPU into this many devices")
      ->type_name("N")
      ->check(CLI::Range(1, kMostCpuDevices))
      ->excludes(file);
}

MachineReader::MachineReader(MachineFlags flags) : flags_(std::move(flags)) {}

Result<Inventory> MachineReader::read() {
  if (!flags_.file.empty()) return recorded::read_machine_file(flags_.file);
  if (!live_ || owner_ != ::getpid())
    live_ = std::make_unique<probe::LiveMachine>(probe::ProbeOptions{.cpu_devices = flags_.cpu_devices});
  owner_ = ::getpid();
  return read_live(*live_);
}

Result<Inventory> read_machine(const MachineFlags& flags) { return MachineReader(flags).read(); }

std::string model_text(const Device& device) {
  if (!device.model.empty()) return device.model;
  return device.vendor.empty() ? "model unknown" : device.vendor + ", model unknown";
}

Result<void> require_live(const MachineFlags& flags, const std::string& what) {
  if (flags.file.empty()) return {};
  return usage_error(fmt::format("{} needs the machine itself; {} is a recording", what, flags.file));
}

}  // namespace remuda::cli

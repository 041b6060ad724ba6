#include "cli/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/number.h"
#include "measure/store.h"
#include "recorded/import.h"
#include "wire/client.h"
#include "wire/place.h"

namespace remuda::cli {
namespace {

Result<Inventory> with_measured(Result<Inventory> seen) {
  REMUDA_ASSIGN(Inventory inventory, std::move(seen));
  if (const auto loaded = measure::load_measured(inventory); !loaded) inventory.notes.push_back(loaded.error().message);
  return inventory;
}

/// Nothing where this user may look at the devices, or the agent does not answer. What the policy says may have changed
/// since the last reading, so each has a connection of its own.
std::optional<Inventory> seen_by_agent() {
  const auto socket = ::geteuid() == 0 ? std::nullopt : wire::agent_socket(true);
  if (!socket) return std::nullopt;
  constexpr double kWithin_s = 3;  // a stopped agent would hold up each reading
  const auto agent = wire::Client::connect(*socket, "", kWithin_s);
  if (!agent || !(*agent)->hides_devices()) return std::nullopt;
  auto seen = (*agent)->see_machine();
  return seen ? std::optional(std::move(*seen)) : std::nullopt;
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
  if (flags_.asks_agent && flags_.cpu_devices == 0)
    if (auto seen = seen_by_agent()) return with_measured(std::move(*seen));
  if (!live_ || owner_ != ::getpid())
    live_ = std::make_unique<probe::LiveMachine>(probe::ProbeOptions{.cpu_devices = flags_.cpu_devices});
  owner_ = ::getpid();
  return with_measured(live_->read());
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

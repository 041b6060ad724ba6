// remuda drain and undrain.
#include "cli/jobs/drain.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/transitions.h"
#include "process/user_name.h"

namespace remuda::cli {
namespace {

struct DrainFlags {
  MachineFlags machine;
  std::vector<std::string> devices;
  std::string reason;
};

/// Who may decide over devices of a pool: root, and whose folder it is.
Result<void> check_operator(const std::string& folder) {
  struct stat info{};
  if (::getuid() == 0 || (::stat(folder.c_str(), &info) == 0 && info.st_uid == ::getuid())) return {};
  return usage_error(fmt::format("only root, and {}, whose pool it is, may drain devices",
                                 process::user_name(static_cast<int>(info.st_uid))));
}

using ChangeDevice = std::function<Result<void>(pool::PoolState&, const Device&)>;

/// All of the devices, or none.
Result<int> change_devices(const DrainFlags& flags, const ChangeDevice& change) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_TRY(check_operator(caretaker.folder()));
  std::vector<Device> devices;
  for (const std::string& name : flags.devices) {
    REMUDA_ASSIGN(const Device* device, caretaker.inventory().resolve(name));
    devices.push_back(*device);
  }
  REMUDA_TRY(caretaker.change([&](pool::PoolState& state) -> Result<void> {
    for (const Device& device : devices) REMUDA_TRY(change(state, device));
    return {};
  }));
  return 0;
}

}  // namespace

std::string drains_text(const MachineFlags& machine, const Inventory& inventory) {
  const auto folder = pool::pool_folder(machine.file);
  std::error_code error;
  if (!folder || !std::filesystem::exists(*folder + "/pool.db", error)) return "";
  auto opened = pool::Pool::open(*folder);
  if (!opened) return "";
  const auto state = opened->read();
  if (!state) return "";
  std::string text;
  for (const pool::Drain& drain : state->drains)
    text += fmt::format("{} is drained: {} ({}, {} ago)\n", label_of(inventory, drain.device), drain.reason, drain.by,
                        duration_text(wall_s() - drain.since_s));
  return text;
}

void add_drain(Program& program) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = program.add("drain", "Grant devices to nobody from now on", [flags] {
    const std::string by = process::user_name(static_cast<int>(::getuid()));
    return change_devices(*flags, [&](pool::PoolState& state, const Device& device) {
      return drain(state, {.device = device.id, .reason = flags->reason, .by = by, .since_s = wall_s()});
    });
  });
  command.add_option("DEVICE", flags->devices, "UUID, index or PCI address")->required();
  command.add_option("--reason", flags->reason, "Why, for all who look for the device")->type_name("TEXT")->required();
  add_machine_options(command, flags->machine);
  command.footer(
      "Jobs on it go on, and those that want it wait. For root, and for whose pool it is.\n\n"
      "Examples:\n"
      "  remuda drain gpu:3 --reason 'the fan is broken, ticket 81'\n"
      "  remuda undrain gpu:3\n");
}

void add_undrain(Program& program) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = program.add("undrain", "Grant drained devices again", [flags] {
    return change_devices(
        *flags, [](pool::PoolState& state, const Device& device) { return undrain(state, device.id, device.label()); });
  });
  command.add_option("DEVICE", flags->devices, "UUID, index or PCI address")->required();
  add_machine_options(command, flags->machine);
  command.footer("Examples:\n  remuda undrain gpu:3\n");
}

}  // namespace remuda::cli

// remuda drain and undrain.
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/operation.h"
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

/// All of the devices, or none: `operation` gets their ids.
template <typename Operation>
Result<int> change_devices(const DrainFlags& flags, Operation operation) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  if (!caretaker.pool().is_served()) REMUDA_TRY(check_operator(caretaker.folder()));
  for (const std::string& name : flags.devices) {
    REMUDA_ASSIGN(const Device* device, caretaker.inventory().resolve(name));
    operation.devices.push_back(device->id);
  }
  REMUDA_TRY(caretaker.apply(operation));
  return 0;
}

}  // namespace

void add_drain(Program& program) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = program.add("drain", "Grant devices to nobody from now on", [flags] {
    const std::string by = process::user_name(static_cast<int>(::getuid()));
    return change_devices(*flags, pool::DrainDevices{.devices = {}, .reason = flags->reason, .by = by});
  });
  command.add_option("DEVICE", flags->devices, "UUID, index or PCI address")->delimiter(',')->required();
  command.add_option("--reason", flags->reason, "Why, for all who look for the device")->type_name("TEXT")->required();
  add_machine_options(command, flags->machine);
  command.footer(
      "Jobs on it go on, and those that want it wait. For root; where no agent serves the pool, also for the\n"
      "owner of its folder.\n\n"
      "Examples:\n"
      "  remuda drain gpu:3 --reason 'the fan is broken, ticket 81'\n"
      "  remuda undrain gpu:3\n");
}

void add_undrain(Program& program) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = program.add("undrain", "Grant drained devices again",
                                  [flags] { return change_devices(*flags, pool::UndrainDevices{}); });
  command.add_option("DEVICE", flags->devices, "UUID, index or PCI address")->delimiter(',')->required();
  add_machine_options(command, flags->machine);
  command.footer("Examples:\n  remuda undrain gpu:3\n");
}

}  // namespace remuda::cli

// remuda drain and undrain.
#include "cli/jobs/drain.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/operation.h"
#include "pool/pool.h"
#include "process/user_name.h"
#include "wire/client.h"

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

/// Of a pool that is there; none is made for this, and what is not to be read is empty.
pool::PoolState state_of(const MachineFlags& machine) {
  const auto place = place_of_pool(machine);
  if (!place) return {};
  if (place->agent) {
    const auto client = wire::Client::connect(*place->agent, "");
    return client ? (*client)->read_around(0).value_or(pool::PoolState{}) : pool::PoolState{};
  }
  std::error_code error;
  if (!std::filesystem::exists(place->folder + "/pool.db", error)) return {};
  auto opened = pool::Pool::open(place->folder);
  return opened ? opened->read().value_or(pool::PoolState{}) : pool::PoolState{};
}

}  // namespace

std::string pool_notes(const MachineFlags& machine, const Inventory& inventory) {
  const pool::PoolState state = state_of(machine);
  std::string text;
  for (const pool::Drain& drain : state.drains)
    text += fmt::format("{} is drained: {} ({}, {} ago)\n", label_of(inventory, drain.device), drain.reason, drain.by,
                        duration_text(wall_s() - drain.since_s));
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    text += fmt::format("{}{} is leased to {} (job {})\n",
                        lease.share < 1 ? fmt::format("{:.0f} % of ", 100 * lease.share) : "",
                        label_of(inventory, lease.device), job ? printable(job->user) : "somebody",
                        job ? name_of(*job) : std::to_string(lease.job));
  }
  return text;
}

void add_drain(Program& program) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = program.add("drain", "Grant devices to nobody from now on", [flags] {
    const std::string by = process::user_name(static_cast<int>(::getuid()));
    return change_devices(*flags, pool::DrainDevices{.devices = {}, .reason = flags->reason, .by = by});
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
  CLI::App& command = program.add("undrain", "Grant drained devices again",
                                  [flags] { return change_devices(*flags, pool::UndrainDevices{}); });
  command.add_option("DEVICE", flags->devices, "UUID, index or PCI address")->required();
  add_machine_options(command, flags->machine);
  command.footer("Examples:\n  remuda undrain gpu:3\n");
}

}  // namespace remuda::cli

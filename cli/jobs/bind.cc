#include <fmt/format.h>
#include <memory>

#include "base/env.h"
#include "base/text.h"
#include "cli/jobs/job_command.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "confine/nearest.h"

namespace remuda::cli {
namespace {

constexpr const char* kBindExamples =
    "The first process on this machine gets the first device of the lease, the second the second, and round again "
    "where\n"
    "there are more processes than devices. OpenMPI, MPICH, Intel MPI, Slurm or torchrun give it its rank.\n\n"
    "Examples:\n"
    "  remuda run -n 2 -- mpirun -np 2 remuda bind -- ./solver\n";

struct BindFlags {
  MachineFlags machine;
  const CLI::App* app = nullptr;  ///< knows the command
};

Result<int> local_rank() {
  constexpr int kMost = 1 << 20;
  for (const env::Variable& variable :
       {env::ompi_local_rank, env::mpi_local_rank, env::pmi_local_rank, env::slurm_local_rank, env::local_rank})
    if (env::get(variable)) return env::get_int(variable, 0, kMost);
  return usage_error(fmt::format("remuda bind runs under mpirun or srun, and none of {}, {}, {}, {}, {} is set",
                                 env::ompi_local_rank.name, env::mpi_local_rank.name, env::pmi_local_rank.name,
                                 env::slurm_local_rank.name, env::local_rank.name));
}

struct Granted {
  std::string device, cpus;  ///< its parts of REMUDA_DEVICES and REMUDA_DEVICE_CPUS; the latter are of CPU devices
};

Result<Granted> granted_to(int rank) {
  const std::string granted = env::get(env::job_devices).value_or("");
  if (granted.empty())
    return usage_error(fmt::format("remuda bind runs within `remuda run`, and {} is not set", env::job_devices.name));
  const std::vector<std::string> devices = split(granted, ','), cpus = split(env::get(env::job_cpus).value_or(""), ';');
  const size_t own = static_cast<size_t>(rank) % devices.size();
  return Granted{devices[own], own < cpus.size() ? cpus[own] : ""};
}

Result<int> bind(const BindFlags& flags) {
  REMUDA_ASSIGN(std::vector<std::string> command, job_command(*flags.app));
  if (command.empty()) return usage_error("there is nothing to run; write the command after --");
  REMUDA_ASSIGN(const int rank, local_rank());
  REMUDA_ASSIGN(const Granted own, granted_to(rank));
  const std::string& device = own.device;
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  const std::vector<int> cpus = parse_index_ranges(own.cpus).value_or(std::vector<int>{});
  if (cpus.empty() && !inventory.find(device))
    return usage_error(fmt::format("there is no device {} here", printable(device)));
  confine::Visibility environment = confine::visibility(inventory, {device});
  environment.set.emplace_back(env::job_devices.name, own.device);
  environment.set.emplace_back(env::job_cpus.name, own.cpus);
  process::Affinity affinity{.cores = cpus, .nodes = {}};
  if (cpus.empty()) affinity = confine::nearest_cores(inventory, {device}, process::allowed_cores());
  return become(std::move(command), environment, flags.machine.file.empty() ? affinity : process::Affinity());
}

}  // namespace

void add_bind(Program& program) {
  auto flags = std::make_shared<BindFlags>();
  CLI::App& command = program.add("bind", "Within a lease, give each MPI process a device of its own",
                                  [flags] { return bind(*flags); });
  flags->app = &command;
  add_job_command(command, "COMMAND", "What to run, after --");
  add_machine_options(command, flags->machine);
  command.footer(kBindExamples);
}

}  // namespace remuda::cli

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <unistd.h>

#include "base/env.h"
#include "cli/jobs/job_command.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "confine/nearest.h"
#include "pool/transitions.h"
#include "run/job_environment.h"

namespace remuda::cli {
namespace {

constexpr const char* kExecFooter =
    "The command sees the job's devices, is held together with the job's processes and kept from devices that the job\n"
    "was not granted. It is killed (SIGKILL: exit status 137 in a shell) once the job's own processes have ended. It\n"
    "takes the place of remuda exec, in this folder and on this terminal, and so has its exit status.\n\n"
    "Examples:\n"
    "  remuda exec 12 -- bash                    a shell on the devices of job 12\n"
    "  remuda exec 12 -- py-spy dump --pid 4711  what a process of it does\n"
    "  remuda exec 5.7 -- remuda list            what index 7 of array 5 sees\n";

struct ExecFlags {
  MachineFlags machine;
  std::string job;
  const CLI::App* app = nullptr;  ///< knows the command
};

/// Its environment cannot be had a second time.
Result<void> check_whole(const pool::Job& job) {
  if (job.daemons.empty()) return {};
  return usage_error(
      fmt::format("job {} has its part of a device through a sharing daemon, whose limits a command that joins it "
                  "would not have",
                  name_of(job)));
}

Result<int> execute(const ExecFlags& flags) {
  REMUDA_ASSIGN(std::vector<std::string> command, job_command(*flags.app));
  if (command.empty()) return usage_error("there is nothing to run; write the command after --");
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::Job job, find_job(caretaker, flags.job));
  REMUDA_TRY(pool::check_enter(job, static_cast<int>(::getuid())));
  REMUDA_TRY(check_whole(job));
  REMUDA_TRY(caretaker.pool().enter(job.id));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read_around(job.id));
  const Inventory& inventory = caretaker.inventory();
  const std::vector<std::string> devices = run::devices_of(state, job.id, inventory);
  confine::Visibility environment = run::job_environment(inventory, caretaker.folder(), job.id, devices);
  std::ranges::move(run::array_environment(job), std::back_inserter(environment.set));
  process::Affinity affinity;
  if (::isatty(STDERR_FILENO) == 1)
    fmt::print(stderr, "remuda: the command is killed, with exit status 137, as soon as job {} has ended\n",
               name_of(job));
  if (flags.machine.file.empty()) affinity = confine::nearest_cores(inventory, devices, process::allowed_cores());
  if (flags.machine.file.empty() && !job.cores.empty()) affinity.cores = job.cores;
  return become(std::move(command), environment, affinity);
}

}  // namespace

void add_exec(Program& program) {
  auto flags = std::make_shared<ExecFlags>();
  CLI::App& command = program.add("exec", "Run a command within a job that runs", [flags] { return execute(*flags); });
  flags->app = &command;
  command.add_option("JOB", flags->job, "Number of the job, or 5.7: index 7 of array 5")->required();
  add_job_command(command, "COMMAND", "What to run, after --");
  add_machine_options(command, flags->machine);
  command.footer(kExecFooter);
}

}  // namespace remuda::cli

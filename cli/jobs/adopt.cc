#include "run/adopt.h"

#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/jobs/job_progress.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/request_flags.h"
#include "cli/jobs/run.h"
#include "cli/jobs/turn_flags.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "place/host.h"

namespace remuda::cli {
namespace {

constexpr const char* kAdoptFooter =
    "For a process of yours that was started without remuda and has opened no device yet: an interpreter, a debugger, "
    "a\n"
    "shell, a server that takes its first model later. It gets a lease, which ends when it has, with all that it "
    "started\n"
    "since. Where a cgroup can be made it is kept from other devices, and to --cpus and --host-mem. Its environment "
    "stays\n"
    "as it is, so it sees all devices: choose the granted one in it. What is kept, and what is not, is printed.\n\n"
    "`remuda cancel JOB` and --time-limit end the process: SIGTERM, and SIGKILL after the grace time of 30 seconds. "
    "How it\n"
    "ends, only its parent is told; so the job has the exit status 125, and no job that is to run --after it "
    "starts.\n\n"
    "Examples:\n"
    "  remuda adopt 4711                 one GPU for process 4711, once one is free\n"
    "  remuda adopt 4711 -n 2 --cpus 8   two, and eight cores of the host\n"
    "  remuda adopt $$                   for this shell\n";

struct AdoptFlags {
  MachineFlags machine;
  RequestFlags request;
  TurnFlags turn;
  std::string name = "adopt";
  int pid = 0;
};

/// As it was started, for people.
std::vector<std::string> command_of(int pid) {
  std::vector<std::string> words = split(read_text(fmt::format("/proc/{}/cmdline", pid)).value_or(""), '\0');
  while (!words.empty() && words.back().empty()) words.pop_back();
  return words.empty() ? std::vector<std::string>{fmt::format("(process {})", pid)} : words;
}

/// How the devices are called in a program that sees all of them.
std::string ids_text(const pool::Job& job) {
  std::string text;
  for (const std::string& device : job.devices) text += (text.empty() ? "" : ", ") + printable(device);
  return text;
}

Result<std::string> kept_and_not(const AdoptFlags& flags, int64_t id) {
  REMUDA_ASSIGN(run::Caretaker caretaker, opener_of(flags.machine)());
  REMUDA_ASSIGN(const auto found, caretaker.pool().find(id));
  if (!found) return "";
  const pool::Job& job = *found;
  std::string text = fmt::format("Job {} holds {}{} until process {} has ended\n", id,
                                 labels_of(job.devices, caretaker.inventory()), host_part_text(job), flags.pid);
  text += job.cgroup.empty() ? "Nothing holds what it starts together, and nothing keeps it from other devices\n"
                             : fmt::format("What it starts is held with it; {}\n",
                                           job.devices_enforced ? "it cannot open other devices"
                                                                : "nothing keeps it from other devices");
  if (wants_host(job.request)) text += fmt::format("Of the host: {}\n", kept_text(job));
  return text + fmt::format("Its environment stays as it is: it sees all devices, so choose {} in it\n", ids_text(job));
}

Result<int> adopt(const AdoptFlags& flags) {
  constexpr double kGrace_s = 30;
  const auto process = process::process_id(flags.pid);
  if (!process) return usage_error(fmt::format("there is no process {}", flags.pid));
  REMUDA_ASSIGN(const Inventory inventory, read_machine(flags.machine));
  REMUDA_TRY(run::check_adoptable(*process, inventory, flags.machine.file.empty()));
  run::RunSpec spec;
  REMUDA_ASSIGN(spec.job.request, make_request(flags.request));
  REMUDA_TRY(apply_turn(flags.turn, spec));
  spec.job.name = flags.name;
  spec.job.command = command_of(flags.pid);
  spec.job.grace_s = spec.grace_s = kGrace_s;
  MachineFlags anywhere = flags.machine;  // the keeper does not run in this folder
  if (!anywhere.file.empty()) anywhere.file = std::filesystem::absolute(anywhere.file).string();
  REMUDA_ASSIGN(const run::RunSpec complete, for_caller(std::move(spec), anywhere));
  note_within_job(complete);
  int64_t id = 0;
  const auto report = job_progress(false, "");
  REMUDA_ASSIGN(const int status, run::adopt(complete, opener_of(anywhere), *process, [&](const run::Message& message) {
                  if (message.job > 0) id = message.job;
                  if (message.kind != run::Message::Kind::started) report(message);
                }));
  if (status != 0) return status;
  REMUDA_ASSIGN(const std::string text, kept_and_not(flags, id));
  print_fitted(text);
  return 0;
}

}  // namespace

void add_adopt(Program& program) {
  auto flags = std::make_shared<AdoptFlags>();
  CLI::App& command =
      program.add("adopt", "Lease devices for a process that runs already", [flags] { return adopt(*flags); });
  command.add_option("PID", flags->pid, "Number of the process")
      ->required()
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  command.add_option("--name", flags->name, "What to call it in `remuda ps`")->type_name("NAME");
  add_request_options(command, flags->request);
  add_turn_options(command, flags->turn);
  add_machine_options(command, flags->machine);
  command.footer(kAdoptFooter);
}

}  // namespace remuda::cli

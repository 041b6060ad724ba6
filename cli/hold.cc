#include "cli/hold.h"

#include <csignal>
#include <memory>

#include "base/env.h"
#include "cli/job_command.h"
#include "cli/queue.h"
#include "cli/request_flags.h"
#include "cli/run.h"

namespace remuda {
namespace {

constexpr const char* kHoldFooter =
    "The shell sees the devices it was granted, and no others. They are given back when it ends, with all that was\n"
    "started in it, or with `remuda release JOB`.\n\n"
    "Examples:\n"
    "  remuda hold                your shell, with one GPU\n"
    "  remuda hold -n 2           with the two that are best joined\n"
    "  remuda hold -n 2 -- zsh    in another shell than yours\n";

struct HoldFlags {
  MachineFlags machine;
  RequestFlags request;
  std::string name = "hold";
  const CLI::App* app = nullptr;  ///< knows the command
};

Result<int> hold(const HoldFlags& flags) {
  constexpr double kGrace_s = 5;
  RunSpec spec;
  REMUDA_ASSIGN(spec.job.request, make_request(flags.request));
  spec.job.name = flags.name;
  REMUDA_ASSIGN(spec.job.command, job_command(*flags.app));
  if (spec.job.command.empty()) spec.job.command = {env::get(env::shell).value_or("/bin/sh")};
  spec.stop_signal = SIGHUP;  // a shell at a terminal does not hear SIGTERM
  spec.grace_s = kGrace_s;
  return run_job(std::move(spec), flags.machine, false);
}

struct ReleaseFlags {
  MachineFlags machine;
  std::vector<int64_t> jobs;
};

}  // namespace

void add_hold(Program& program) {
  auto flags = std::make_shared<HoldFlags>();
  CLI::App& command = program.add("hold", "Open a shell that holds devices", [flags] { return hold(*flags); });
  flags->app = &command;
  add_job_command(command, "SHELL", "What to start in place of your shell, after --");
  command.add_option("--name", flags->name, "What to call it in `remuda ps`")->type_name("NAME");
  add_request_options(command, flags->request);
  add_machine_options(command, flags->machine);
  command.footer(kHoldFooter);
}

void add_release(Program& program) {
  auto flags = std::make_shared<ReleaseFlags>();
  CLI::App& command = program.add("release", "Give back what `remuda hold` holds",
                                  [flags] { return cancel_jobs(flags->machine, flags->jobs); });
  command.add_option("JOB", flags->jobs, "Numbers from `remuda ps`")->required();
  add_machine_options(command, flags->machine);
  command.footer("Its shell gets SIGHUP, and SIGKILL five seconds later.\n\nExamples:\n  remuda release 12\n");
}

}  // namespace remuda

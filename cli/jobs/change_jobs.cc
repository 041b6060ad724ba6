// remuda reprioritize, pause and resume.
#include <memory>

#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "pool/operation.h"

namespace remuda::cli {
namespace {

/// All of them, or none: `operation` gets their numbers.
template <typename Operation>
Result<int> change_jobs(const MachineFlags& machine, const std::vector<std::string>& names, Operation operation) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  for (const std::string& name : names) {
    REMUDA_ASSIGN(const pool::Job job, find_job(caretaker, name));
    operation.jobs.push_back(job.id);
  }
  REMUDA_TRY(caretaker.apply(operation));
  return 0;
}

struct ChangeFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  std::string job;
  int priority = 0;
};

template <typename Operation>
void add_pausing(Program& program, const char* name, const char* summary, const char* footer) {
  auto flags = std::make_shared<ChangeFlags>();
  CLI::App& command =
      program.add(name, summary, [flags] { return change_jobs(flags->machine, flags->jobs, Operation{}); });
  command.add_option("JOB", flags->jobs, "Numbers of the jobs, or 5.7: index 7 of array 5")->delimiter(',')->required();
  add_machine_options(command, flags->machine);
  command.footer(footer);
}

}  // namespace

void add_reprioritize(Program& program) {
  auto flags = std::make_shared<ChangeFlags>();
  CLI::App& command = program.add("reprioritize", "Give a job another priority", [flags] {
    return change_jobs(flags->machine, {flags->job}, pool::Reprioritize{.jobs = {}, .priority = flags->priority});
  });
  command.add_option("JOB", flags->job, "Number of the job, or 5.7: index 7 of array 5")->required();
  command.add_option("N", flags->priority, "The priority: higher goes first")
      ->required()
      ->check(CLI::Range(-1000, 1000));
  add_machine_options(command, flags->machine);
  command.footer(
      "Of an array, all its jobs get it, those that have not entered the queue too.\n\n"
      "Examples:\n"
      "  remuda reprioritize 12 5   ahead of those of lower priority\n"
      "  remuda reprioritize 12 -5  behind all others\n");
}

void add_pause(Program& program) {
  add_pausing<pool::Pause>(
      program, "pause", "Keep waiting jobs from starting",
      "A job that is paused keeps its place in the queue, and does not start until `remuda resume`. A job that\n"
      "runs cannot be paused. Where one of several cannot, none is. (`remuda hold` is another thing: a shell that "
      "holds devices.)\n\n"
      "Examples:\n"
      "  remuda pause 12 13\n"
      "  remuda pause 5      of array 5, all jobs that wait\n");
}

void add_resume(Program& program) {
  add_pausing<pool::Resume>(program, "resume", "Let paused jobs start again",
                            "Examples:\n"
                            "  remuda resume 12 13\n");
}

}  // namespace remuda::cli

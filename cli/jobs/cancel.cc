#include "cli/jobs/cancel.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <unistd.h>

#include "base/clock.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "process/tree.h"

namespace remuda::cli {
namespace {

/// Whether the job has ended since `before`: one that was named twice, or with its array, is ended by the first of
/// these names.
bool ended_since(const pool::PoolState& before, const pool::PoolState& now, int64_t id) {
  const auto has_ended = [&](const pool::PoolState& state) {
    const pool::Job* job = state.find(id);
    return job && job->state == pool::JobState::ended;
  };
  return has_ended(now) && !has_ended(before);
}

struct CancelFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
};

}  // namespace

Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<std::string>& names) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  std::vector<Error> refused;
  std::vector<int64_t> jobs;
  for (const std::string& name : names) {
    const auto job = find_job(caretaker, name);
    if (job)
      jobs.push_back(job->id);
    else
      refused.push_back(job.error());
  }
  std::vector<Error> not_ended;
  std::vector<process::ProcessId> keepers;
  const auto cancel_all = [&](pool::PoolState& state) -> Result<void> {
    not_ended.clear();
    const pool::PoolState before = state;
    for (const int64_t id : jobs) {
      const auto cancelled = cancel(state, id, static_cast<int>(::getuid()), wall_s());
      if (!cancelled && !ended_since(before, state, id)) not_ended.push_back(cancelled.error());
    }
    keepers.clear();
    for (const pool::Job& job : state.jobs)
      if (job.cancelled && job.state == pool::JobState::running) keepers.push_back(job.keeper);
    return {};
  };
  REMUDA_TRY(caretaker.change(cancel_all, jobs));
  for (const process::ProcessId& keeper : keepers) process::send_signal(keeper, SIGCONT);  // a stopped one sees it, too
  std::ranges::move(not_ended, std::back_inserter(refused));
  if (refused.empty()) return 0;
  for (size_t i = 0; i + 1 < refused.size(); ++i) fmt::print(stderr, "remuda: {}\n", refused[i].message);
  return tl::unexpected(std::move(refused.back()));
}

Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<int64_t>& jobs) {
  std::vector<std::string> names;
  for (const int64_t job : jobs) names.push_back(std::to_string(job));
  return cancel_jobs(machine, names);
}

void add_cancel(Program& program) {
  auto flags = std::make_shared<CancelFlags>();
  CLI::App& command = program.add("cancel", "End jobs, waiting or running",
                                  [flags] { return cancel_jobs(flags->machine, flags->jobs); });
  command.add_option("JOB", flags->jobs, "Numbers of the jobs, or 5.7: index 7 of array 5")->required();
  add_machine_options(command, flags->machine);
  command.footer(
      "A running job gets its stop signal, and SIGKILL after its grace time. The number of an array ends all its "
      "jobs.\n"
      "Jobs that had ended already are named on stderr, and the exit status is 2; the others are ended.\n\n"
      "Examples:\n"
      "  remuda cancel 12 13\n"
      "  remuda cancel 5.7    index 7 of array 5, and no other\n");
}

}  // namespace remuda::cli

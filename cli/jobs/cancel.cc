#include "cli/jobs/cancel.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "process/tree.h"
#include "process/user_name.h"

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

/// Those that run and are to end: a stopped one sees it, too, once it goes on.
std::vector<process::ProcessId> keepers_to_wake(const pool::PoolState& state) {
  std::vector<process::ProcessId> keepers;
  for (const pool::Job& job : state.jobs)
    if (job.cancelled && job.state == pool::JobState::running) keepers.push_back(job.keeper);
  return keepers;
}

struct CancelFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  std::string name, user;
};

/// Those of this user, or, for root, of the one that is named.
Result<pool::Selection> selection_of(const CancelFlags& flags) {
  const int uid = static_cast<int>(::getuid());
  const std::string own = process::user_name(uid);
  if (!flags.user.empty() && flags.user != own && uid != 0)
    return usage_error(fmt::format("--user: jobs of {} can be cancelled by {} and root only", printable(flags.user),
                                   printable(flags.user)));
  return pool::Selection{.name = flags.name, .user = flags.user.empty() ? own : flags.user};
}

Result<int> cancel_selected(const CancelFlags& flags) {
  if (!flags.jobs.empty()) return usage_error("write numbers of jobs, or --name and --user, not both");
  REMUDA_ASSIGN(const pool::Selection selection, selection_of(flags));
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  std::vector<int64_t> jobs;
  std::vector<process::ProcessId> keepers;
  REMUDA_TRY(caretaker.change([&](pool::PoolState& state) -> Result<void> {
    jobs = select_jobs(state, selection);
    for (const int64_t id : jobs) REMUDA_TRY(cancel(state, id, static_cast<int>(::getuid()), wall_s()));
    keepers = keepers_to_wake(state);
    return {};
  }));
  for (const process::ProcessId& keeper : keepers) process::send_signal(keeper, SIGCONT);
  if (jobs.empty())
    fmt::print("No such job waits or runs\n");
  else
    fmt::print("Cancelled {}: {}\n", jobs.size() == 1 ? "job" : "jobs", fmt::join(jobs, ", "));
  return 0;
}

Result<int> cancel_as_asked(const CancelFlags& flags) {
  if (!flags.name.empty() || !flags.user.empty()) return cancel_selected(flags);
  if (flags.jobs.empty()) return usage_error("cancel which jobs? write their numbers, --name or --user");
  return cancel_jobs(flags.machine, flags.jobs);
}

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
    keepers = keepers_to_wake(state);
    return {};
  };
  REMUDA_TRY(caretaker.change(cancel_all, jobs));
  for (const process::ProcessId& keeper : keepers) process::send_signal(keeper, SIGCONT);
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
  CLI::App& command =
      program.add("cancel", "End jobs, waiting or running", [flags] { return cancel_as_asked(*flags); });
  command.add_option("JOB", flags->jobs, "Numbers of the jobs, or 5.7: index 7 of array 5");
  command.add_option("--name", flags->name, "All of your jobs that have this name")->type_name("NAME");
  command.add_option("--user", flags->user, "All jobs of this user: you, or, for root, anybody")->type_name("USER");
  add_machine_options(command, flags->machine);
  command.footer(
      "A running job gets its stop signal, and SIGKILL after its grace time. The number of an array ends all its "
      "jobs.\n"
      "Jobs that had ended already are named on stderr, and the exit status is 2; the others are ended. --name and\n"
      "--user ask nothing, and print which jobs they have cancelled.\n\n"
      "Examples:\n"
      "  remuda cancel 12 13\n"
      "  remuda cancel 5.7           index 7 of array 5, and no other\n"
      "  remuda cancel --name sweep  all of yours of that name\n"
      "  remuda cancel --user alice  all of hers: as alice, or as root\n");
}

}  // namespace remuda::cli

#include "cli/jobs/cancel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <unistd.h>

#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/kept_environment.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "process/user_name.h"

namespace remuda::cli {
namespace {

struct CancelFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  std::string name, user;
};

/// Those of this user, or, for root, of the one that is named.
Result<pool::CancelSelected> selection_of(const CancelFlags& flags) {
  const int uid = static_cast<int>(::getuid());
  const std::string own = process::user_name(uid);
  if (!flags.user.empty() && flags.user != own && uid != 0)
    return usage_error(fmt::format("--user: jobs of {} can be cancelled by {} and root only", printable(flags.user),
                                   printable(flags.user)));
  return pool::CancelSelected{.name = flags.name, .user = flags.user.empty() ? own : flags.user};
}

/// "no job of alice that is called sweep".
std::string selection_text(const pool::CancelSelected& selection) {
  return fmt::format("no job of {}{}", printable(selection.user),
                     selection.name.empty() ? "" : " that is called " + printable(selection.name));
}

/// Of those that waited in the background.
void forget_environments_of(run::Caretaker& caretaker, const std::vector<int64_t>& jobs) {
  if (!caretaker.pool().is_served()) return;  // else each has a process, which does that
  forget_environments(caretaker.folder(), jobs, [&] { return own_open_jobs(caretaker.pool()); });
}

Result<int> cancel_selected(const CancelFlags& flags) {
  if (!flags.jobs.empty()) return usage_error("write numbers of jobs, or --name and --user, not both");
  REMUDA_ASSIGN(const pool::CancelSelected selection, selection_of(flags));
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::Applied applied, caretaker.apply(selection));
  const std::vector<int64_t>& jobs = applied.cancelled;
  if (jobs.empty()) return usage_error(fmt::format("{} waits or runs", selection_text(selection)));
  forget_environments_of(caretaker, jobs);
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
  REMUDA_ASSIGN(const pool::Applied applied, caretaker.apply(pool::Cancel{jobs}));
  forget_environments_of(caretaker, jobs);
  for (const std::string& why : applied.refused) refused.push_back({ErrorKind::usage, why, -1});
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
  command.add_option("JOB", flags->jobs, "Numbers of the jobs, or 5.7: index 7 of array 5")->delimiter(',');
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

#include "cli/jobs/history.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "base/clock.h"
#include "base/local_time.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/moment.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/show.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"

namespace remuda::cli {
namespace {

struct HistoryFlags {
  MachineFlags machine;
  std::string user, since, state;
  size_t at_most = 20;
  bool json = false;
};

std::string ran_text(const pool::Job& job) {
  return job.started_s > 0 ? duration_text(job.ended_s - job.started_s) : "-";
}

/// A job that its time limit ended has the status of the signal that did it.
std::string exit_text_in_short(const pool::Job& job) {
  const bool by_limit = job.why.starts_with("reached its time limit");
  return std::to_string(exit_status_of(job)) + (by_limit ? " (time limit)" : "");
}

Result<HistoryFilter> filter_of(const HistoryFlags& flags, double now_s) {
  HistoryFilter filter{.user = flags.user, .since_s = 0, .stage = {}, .at_most = flags.at_most};
  if (!flags.state.empty()) filter.stage = from_word<pool::Stage>(flags.state);
  if (flags.since.empty()) return filter;
  const auto since_s = parse_moment(flags.since, now_s, Side::past);
  if (!since_s)
    return usage_error(
        fmt::format("--since: '{}' is no time; write 7d, 2h, 14:30 or 2026-11-24", printable(flags.since)));
  filter.since_s = *since_s;
  return filter;
}

Result<int> history(const HistoryFlags& flags) {
  const double now_s = wall_s();
  REMUDA_ASSIGN(const HistoryFilter filter, filter_of(flags, now_s));
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(std::vector<pool::Job> ended, caretaker.pool().ended(kAllEnded));
  const std::vector<pool::Job> jobs = filtered(std::move(ended), filter);
  if (!flags.json) {
    fmt::print("{}", history_text(jobs, caretaker.inventory(), table_width()));
    return 0;
  }
  Json list = Json::array();
  for (const pool::Job& job : jobs) list.push_back(job_json(job, caretaker.inventory(), now_s));
  fmt::print("{}", to_pretty(Json{{"jobs", std::move(list)}}));
  return 0;
}

}  // namespace

std::vector<pool::Job> filtered(std::vector<pool::Job> ended, const HistoryFilter& filter) {
  std::erase_if(ended, [&](const pool::Job& job) {
    return (!filter.user.empty() && job.user != filter.user) || job.ended_s < filter.since_s ||
           (filter.stage && stage_of(job) != *filter.stage);
  });
  std::ranges::sort(ended, {}, [](const pool::Job& job) { return std::pair(-job.ended_s, -job.id); });
  if (ended.size() > filter.at_most) ended.resize(filter.at_most);
  return ended;
}

std::string history_text(const std::vector<pool::Job>& jobs, const Inventory& inventory, size_t width) {
  if (jobs.empty()) return "No such job has ended, as far as the pool remembers\n";
  Table table({"JOB", "USER", "ENDED", "STATE", "EXIT", "RAN", "DEVICES", "WHAT"});
  table.cut_first(7);
  for (const pool::Job& job : jobs)
    table.add({name_of(job), job.user, local_time_text(job.ended_s), to_string(stage_of(job)), exit_text_in_short(job),
               ran_text(job), job.devices.empty() ? "-" : labels_of(job.devices, inventory), what_text(job)});
  return table.text(width);
}

void add_history(Program& program) {
  auto flags = std::make_shared<HistoryFlags>();
  CLI::App& command = program.add("history", "Show the jobs that have ended", [flags] { return history(*flags); });
  command.add_option("--user", flags->user, "Of this user only")->type_name("USER");
  command.add_option("--since", flags->since, "That ended since then: 7d, 2h, 14:30 or 2026-11-24")->type_name("TIME");
  command.add_option("--state", flags->state, "How they ended")->check(CLI::IsMember({"done", "failed", "cancelled"}));
  command.add_option("-n,--lines", flags->at_most, "At most so many, the newest; 20 unless given")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command.add_flag("--json", flags->json, "Print as JSON, each job as `remuda show --json` does");
  add_machine_options(command, flags->machine);
  command.footer(
      "The last to end comes first. The pool remembers the last 10000 jobs of each user that ended.\n\n"
      "Examples:\n"
      "  remuda history                               the last 20\n"
      "  remuda history --user alice --state failed   what went wrong\n"
      "  remuda history --since 7d -n 1000 --json     a week of jobs, for programs\n");
}

}  // namespace remuda::cli

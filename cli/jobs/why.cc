#include <fmt/format.h>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/array_jobs.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/show.h"
#include "cli/jobs/wait_report.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "place/host.h"

namespace remuda::cli {
namespace {

Result<std::string> waiting_text(const run::Caretaker& caretaker, const pool::PoolState& state, const pool::Job& job) {
  REMUDA_ASSIGN(const WaitReport report, wait_report(caretaker, state, job, wall_s()));
  const std::string so_long = duration_text(wall_s() - job.submitted_s);
  return fmt::format("Job {} has waited for {}: {}\n", name_of(job), so_long, job.why) + report_text(report, job);
}

std::string running_text(const Inventory& inventory, const pool::PoolState& state, const pool::Job& job) {
  std::string text =
      fmt::format("Job {} has run for {} on {}; {}\n", name_of(job), duration_text(wall_s() - job.started_s),
                  devices_text(state, job.id, inventory) + host_part_text(job),
                  job.devices_enforced ? "it cannot open other devices"
                                       : "nothing but variables, where it heeds them, keeps it from other devices");
  if (wants_host(job.request)) text += fmt::format("Of the host: {}\n", kept_text(job));
  if (job.cancelled)
    text += fmt::format("It {}, and has its grace time to end\n", job.why.empty() ? "was cancelled" : job.why);
  if (job.passed > 0)
    text += fmt::format("It passed job {}, for which devices are kept: it ends before that can start\n", job.passed);
  if (job.idle.step != pool::IdleStep::none && job.evicted.empty())
    text += fmt::format("Its devices idle: {}\n", job.idle.text);
  if (!job.evicted.empty()) text += fmt::format("It has its grace time to end: {}\n", job.evicted);
  if (job.preempted_by > 0) text += fmt::format("It makes room for job {}\n", job.preempted_by);
  return text;
}

std::string ended_text(const pool::Job& job) {
  return fmt::format("Job {} ended {} ago: {}\n", name_of(job), duration_text(wall_s() - job.ended_s), end_text(job));
}

/// "failed      3,7-9" for each list of indices that is not empty.
std::string indices_text(const ArrayStates& states) {
  std::string text;
  const std::pair<const char*, const std::vector<int>*> lists[] = {
      {"failed", &states.failed}, {"cancelled", &states.cancelled}, {"running", &states.running}};
  for (const auto& [word, indices] : lists)
    if (!indices->empty()) text += fmt::format("{:<9}  {}\n", word, index_ranges(*indices));
  return text;
}

Result<std::string> array_text(run::Caretaker& caretaker, const pool::Job& array) {
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), array.id));
  const ArrayStates states = array_states(array, jobs);
  const bool has_ended = array.state == pool::JobState::ended;
  const double since_s = has_ended ? array.ended_s : array.submitted_s;
  std::string text = fmt::format("Array {} {} {} ago: {}\n", array.id, has_ended ? "ended" : "was submitted",
                                 duration_text(wall_s() - since_s), states_text(array, states));
  text += indices_text(states);
  for (const pool::Job& job : jobs)
    if (job.state == pool::JobState::waiting && !job.why.empty()) {
      text += fmt::format("Job {} waits: {}\n", name_of(job), job.why);
      break;  // the first in its turn
    }
  if (has_ended && !states.not_done().empty())
    text += fmt::format("`remuda rerun {}` runs the indices again that are not done\n", array.id);
  return text;
}

Result<std::string> why_text(run::Caretaker& caretaker, const std::string& name) {
  REMUDA_ASSIGN(const pool::Job job, find_job(caretaker, name));
  if (is_array(job)) return array_text(caretaker, job);
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  switch (job.state) {
    case pool::JobState::waiting:
      return waiting_text(caretaker, state, job);
    case pool::JobState::running:
      return running_text(caretaker.inventory(), state, job);
    case pool::JobState::ended:
      break;
  }
  return ended_text(job);
}

/// All that is known of the job; of an array, the states of its indices too.
Result<Json> why_json(run::Caretaker& caretaker, const std::string& name) {
  REMUDA_ASSIGN(const pool::Job job, find_job(caretaker, name));
  Json json = job_json(job, caretaker.inventory(), wall_s());
  if (!is_array(job) && job.state == pool::JobState::waiting) {
    REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
    REMUDA_ASSIGN(const WaitReport report, wait_report(caretaker, state, job, wall_s()));
    add_report(report, json);
  }
  if (!is_array(job)) return json;
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), job.id));
  const ArrayStates states = array_states(job, jobs);
  json["indices"] = {{"done", states.done},       {"failed", states.failed},   {"cancelled", states.cancelled},
                     {"running", states.running}, {"waiting", states.waiting}, {"not_started", states.not_started}};
  return json;
}

struct WhyFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  bool json = false;
};

Result<int> why(const WhyFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  if (flags.json) {
    Json list = Json::array();
    for (const std::string& job : flags.jobs) {
      REMUDA_ASSIGN(Json json, why_json(caretaker, job));
      list.push_back(std::move(json));
    }
    fmt::print("{}", to_pretty(Json{{"jobs", std::move(list)}}));
    return 0;
  }
  for (const std::string& job : flags.jobs) {
    REMUDA_ASSIGN(const std::string text, why_text(caretaker, job));
    print_fitted(text);
  }
  return 0;
}

}  // namespace

void add_why(Program& program) {
  auto flags = std::make_shared<WhyFlags>();
  CLI::App& command = program.add("why", "Say why a job waits, or how it ended", [flags] { return why(*flags); });
  command.add_option("JOB", flags->jobs, "Number of the job, or 5.7: index 7 of array 5")->delimiter(',')->required();
  command.add_flag("--json", flags->json, "Print all that is known of them as JSON");
  add_machine_options(command, flags->machine);
  command.footer(
      "Examples:\n"
      "  remuda why 12   why it waits, what it has, or how it ended\n"
      "  remuda why 5    of an array, how many indices are done, and which failed\n"
      "  remuda why 5.7  index 7 of it\n"
      "  remuda why --json 12  all that is known of it, for programs\n");
}

}  // namespace remuda::cli

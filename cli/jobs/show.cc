#include "cli/jobs/show.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "base/clock.h"
#include "base/local_time.h"
#include "base/named_lines.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/jobs/array_jobs.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "confine/host_limits.h"
#include "place/host.h"
#include "pool/stage.h"
#include "snapshot/sentences.h"

namespace remuda::cli {
namespace {

std::string moment_text(double at_s, double now_s) {
  if (at_s <= 0) return "";
  const std::string away = at_s <= now_s ? duration_text(now_s - at_s) + " ago" : "in " + duration_text(at_s - now_s);
  return fmt::format("{}, {}", local_time_text(at_s), away);
}

std::string numbers_text(const std::vector<int64_t>& jobs) { return fmt::format("{}", fmt::join(jobs, ", ")); }

std::string request_text(const place::Request& request) {
  std::string devices = counted(request.count, "device");
  if (!request.devices.empty()) devices += fmt::format(" of {}", fmt::join(request.devices, ", "));
  const std::string part = request.share < 1 ? fmt::format("{:.0f} % of ", request.share * 100) : "";
  const std::string which = conditions_text(request, request.count > 1);
  const std::string host = host_text(request);
  std::string text = part + devices + (which == "can be taken" ? "" : " that " + which);
  if (request.link != place::LinkNeed::any) text += fmt::format(", joined by {}", to_string(request.link));
  if (request.any_model && request.count > 1) text += ", of any model";
  return text + (host.empty() ? "" : ", " + host);
}

std::string exit_text(const pool::Job& job) {
  if (job.state != pool::JobState::ended) return "";
  return std::to_string(exit_status_of(job)) + (job.signal > 0 ? fmt::format(" (signal {})", job.signal) : "");
}

/// The most of the host's memory that it had at once, or why that is not known; empty where it was not to be counted.
std::string memory_text(const pool::Job& job) {
  if (!job.memory_peak_bytes.was_read()) return "";
  if (!job.memory_peak_bytes.has_value()) return "not known: " + job.memory_peak_bytes.missing().detail;
  const char* when = job.state == pool::JobState::running ? "so far" : "at once";
  return fmt::format("{} of the host {}, at most", amount_text(job.memory_peak_bytes.value()), when);
}

/// What the run says of itself, while it does.
std::string run_text(const pool::Job& job, const Inventory& inventory, double now_s) {
  if (job.state != pool::JobState::running || !job.run.is_fresh(now_s)) return "";
  std::string text = snapshot::progress_text(job.run.step, job.run.steps, job.run.step_s);
  for (const pool::RunPart& part : job.run.parts)
    text += fmt::format("{} {} waits for others {:.0f} %", &part == job.run.parts.data() ? ";" : ",",
                        label_of(inventory, part.device), part.waiting * 100);
  if (!job.run.parts.empty()) text += " of the time";
  const std::string kept =
      snapshot::checkpoint_text(job.run.checkpoint_step, job.run.checkpoint_age_at(now_s), job.run.checkpoint_every_s);
  return kept.empty() ? text : text + "; " + kept;
}

std::string command_text(const pool::Job& job) { return fmt::format("{}", fmt::join(job.command, " ")); }

void add_times(const pool::Job& job, double now_s, NamedLines& lines) {
  lines.add("submitted", moment_text(job.submitted_s, now_s));
  if (job.state == pool::JobState::waiting) lines.add("begins", moment_text(job.begin_s, now_s));
  lines.add("started", moment_text(job.started_s, now_s));
  lines.add("ended", moment_text(job.ended_s, now_s));
  if (job.started_s > 0) lines.add("ran for", duration_text((job.ended_s > 0 ? job.ended_s : now_s) - job.started_s));
  if (job.time_limit_s > 0) lines.add("time limit", duration_text(job.time_limit_s));
}

void add_place_in_queue(const pool::Job& job, NamedLines& lines) {
  if (job.priority != 0) lines.add("priority", std::to_string(job.priority));
  if (job.preemptible) lines.add("makes room", "for jobs of higher priority");
  lines.add("after", numbers_text(job.after));
  lines.add("after any", numbers_text(job.after_any));
  if (job.restarts > 0) lines.add("restarts", std::to_string(job.restarts));
}

}  // namespace

std::string job_text(const pool::Job& job, const Inventory& inventory, double now_s) {
  NamedLines lines;
  lines.add("job", name_of(job) + (job.name.empty() ? "" : fmt::format(" ({})", job.name)));
  lines.add("user", job.user);
  lines.add("state", to_string(stage_of(job)));
  lines.add("why", job.why);
  lines.add("exit", exit_text(job));
  add_times(job, now_s, lines);
  add_place_in_queue(job, lines);
  if (!is_array(job)) lines.add("asks for", request_text(job.request));
  const bool runs = job.state == pool::JobState::running;
  lines.add(runs ? "has" : "had", labels_of(job.devices, inventory) + host_part_text(job));
  if (runs && wants_host(job.request)) lines.add("kept", kept_text(job));
  if (runs && job.idle.step != pool::IdleStep::none)
    lines.add("idle", fmt::format("{}: {}", to_string(job.idle.step), job.idle.text));
  lines.add("run", run_text(job, inventory, now_s));
  lines.add("memory", memory_text(job));
  for (const pool::Turn& turn : job.earlier)
    lines.add("before", fmt::format("{} for {}, {}", labels_of(turn.devices, inventory),
                                    duration_text(turn.ended_s - turn.began_s), moment_text(turn.began_s, now_s)));
  lines.add("folder", job.folder);
  lines.add("command", command_text(job));
  lines.add("at end", job.at_end);
  lines.add("mail", job.mail);
  lines.add("log", job.log);
  return lines.text();
}

Json job_json(const pool::Job& job, const Inventory& inventory, double now_s) {
  Json json = to_json(job);
  json["job"] = name_of(job);
  json["stage"] = to_string(stage_of(job));
  if (job.state == pool::JobState::ended) json["exit"] = exit_status_of(job);
  if (job.started_s > 0) json["ran_s"] = (job.ended_s > 0 ? job.ended_s : now_s) - job.started_s;
  Json labels = Json::array();
  for (const std::string& device : job.devices) labels.push_back(label_of(inventory, device));
  if (!labels.empty()) json["labels"] = std::move(labels);
  return json;
}

namespace {

struct ShowFlags {
  MachineFlags machine;
  std::vector<std::string> jobs;
  bool json = false;
};

/// Of a job that runs, as its cgroup has counted it until now; where that is another user's, it is not seen.
void add_memory(pool::Job& job) {
  if (job.state != pool::JobState::running || job.cgroup.empty()) return;
  job.memory_peak_bytes =
      confine::memory_use(job.cgroup, confine::find_cgroups(job.cgroup.substr(job.cgroup.rfind('/') + 1))).peak_bytes;
}

Result<std::string> states_line(run::Caretaker& caretaker, const pool::Job& job) {
  if (!is_array(job)) return "";
  REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), job.id));
  return fmt::format("{:<10}  {}\n", "indices", states_text(job, array_states(job, jobs)));
}

Result<int> show(const ShowFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  const double now_s = wall_s();
  std::string text;
  Json list = Json::array();
  for (const std::string& name : flags.jobs) {
    REMUDA_ASSIGN(pool::Job job, find_job(caretaker, name));
    add_memory(job);
    list.push_back(job_json(job, caretaker.inventory(), now_s));
    REMUDA_ASSIGN(const std::string indices, states_line(caretaker, job));
    text += (text.empty() ? "" : "\n") + job_text(job, caretaker.inventory(), now_s) + indices;
  }
  if (flags.json)
    fmt::print("{}", to_pretty(Json{{"jobs", std::move(list)}}));
  else
    print_fitted(text);
  return 0;
}

}  // namespace

void add_show(Program& program) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App& command = program.add("show", "Show all that is known of a job, also of one that has ended",
                                  [flags] { return show(*flags); });
  command.add_option("JOB", flags->jobs, "Number of the job, or 5.7: index 7 of array 5")->delimiter(',')->required();
  command.add_flag("--json", flags->json,
                   "Print as JSON: the record of the pool, with \"stage\", \"exit\" and \"ran_s\"");
  add_machine_options(command, flags->machine);
  command.footer(
      "The pool remembers the last 10000 jobs of each user that ended. `remuda why JOB` says what one waits for.\n\n"
      "Examples:\n"
      "  remuda show 12         times, devices, how it ended\n"
      "  remuda show --json 12  the same for programs\n");
}

}  // namespace remuda::cli

#include "cli/jobs/queue.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "base/characters.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/terminal.h"
#include "device/fields.h"
#include "share/job_sharing.h"

namespace remuda::cli {
namespace {

struct QueueFlags {
  MachineFlags machine;
  bool json = false;
};

std::string label_of(const Inventory& inventory, const std::string& id) {
  const Device* device = inventory.find(id);
  return device ? device->label() : id;
}

std::string what_text(const pool::Job& job) {
  constexpr size_t kLongest = 60;
  std::string text;
  for (const std::string& argument : job.command) text += (text.empty() ? "" : " ") + argument;
  if (!job.name.empty()) text = job.name + ": " + text;
  if (job.array != 0 && !is_array(job)) text = fmt::format("[{}] {}", job.array_index, text);
  std::ranges::replace(text, '\t', ' ');
  return shortened(printable(text), kLongest);
}

std::string until_text(double until_s, double now_s) { return until_s > 0 ? duration_text(until_s - now_s) : "-"; }

/// How the device is shared, and which limits hold; nothing of one that is whole.
void add_sharing(const pool::PoolState& state, const pool::Lease& lease, const Inventory& inventory, Json& json) {
  const share::Sharing how = share::sharing_of(state, lease, inventory);
  if (how == share::Sharing::whole) return;
  const auto word = [](bool is_hard) { return is_hard ? "hard" : "advisory"; };
  const share::Limits limits = limits_of(how);
  json["sharing"] = to_string(how);
  json["limits"] = {{"memory", word(limits.memory_hard)}, {"compute", word(limits.compute_hard)}};
}

std::string share_text(const pool::PoolState& state, const pool::Lease& lease, const Inventory& inventory) {
  const share::Sharing how = share::sharing_of(state, lease, inventory);
  return fmt::format("{:.0f} %{}", lease.share * 100,
                     how == share::Sharing::whole ? "" : fmt::format(" ({})", to_string(how)));
}

std::string devices_text(const pool::PoolState& state, int64_t job, const Inventory& inventory) {
  std::string text;
  for (const pool::Lease& lease : state.leases)
    if (lease.job == job) text += (text.empty() ? "" : ", ") + label_of(inventory, lease.device);
  return text;
}

Result<int> ps(const QueueFlags& flags) {
  note_pool_obstacle(flags.machine);
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const std::vector<place::Held> foreign = caretaker.held_without_lease(state);
  const double now_s = wall_s();
  if (flags.json)
    fmt::print("{}", to_pretty(pool_json(state, foreign, caretaker.inventory(), now_s)));
  else
    fmt::print("{}", leases_text(state, foreign, caretaker.inventory(), now_s, table_width()));
  return 0;
}

Result<int> queue(const QueueFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const double now_s = wall_s();
  if (flags.json) {
    Json list = Json::array();
    for (const pool::Job* job : waiting_jobs(state, {}, now_s)) list.push_back(to_json(*job));
    fmt::print("{}", to_pretty(Json{{"waiting", std::move(list)}}));
  } else {
    fmt::print("{}", queue_text(state, now_s, table_width()));
  }
  return 0;
}

Result<std::string> waiting_text(run::Caretaker& caretaker, const pool::PoolState& state, const pool::Job& job) {
  const std::string so_long = duration_text(wall_s() - job.submitted_s);
  if (is_array(job)) return fmt::format("Array {} is {} old: {}\n", job.id, so_long, job.why);
  std::string text = fmt::format("Job {} has waited for {}: {}\n", job.id, so_long, job.why);
  std::vector<place::Held> held = held_by_leases(state);
  std::ranges::copy(caretaker.held_without_lease(state), std::back_inserter(held));
  REMUDA_ASSIGN(const place::Answer answer, place(place::Layout(caretaker.inventory()), job.request, held));
  if (const auto* refusal = std::get_if<place::Refusal>(&answer)) text += refusal_text(*refusal);
  auto waiting = waiting_jobs(state, {}, wall_s());
  std::erase_if(waiting, [](const pool::Job* one) { return is_array(*one); });
  const auto before = std::ranges::find(waiting, job.id, &pool::Job::id) - waiting.begin();
  if (before == 0) return text + "It is the first in the queue\n";
  return text + fmt::format("{} waiting job{} before it\n", before, before == 1 ? " goes" : "s go");
}

std::string running_text(const Inventory& inventory, const pool::PoolState& state, const pool::Job& job) {
  std::string text = fmt::format(
      "Job {} has run for {} on {}; {}\n", job.id, duration_text(wall_s() - job.started_s),
      devices_text(state, job.id, inventory),
      job.devices_enforced ? "it cannot open other devices" : "other devices are hidden from it by variables only");
  if (job.preempted_by > 0) text += fmt::format("It makes room for job {}\n", job.preempted_by);
  return text;
}

Result<std::string> why_text(run::Caretaker& caretaker, int64_t id) {
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const pool::Job* job = state.find(id);
  if (job && job->state == pool::JobState::waiting) return waiting_text(caretaker, state, *job);
  if (job && job->state == pool::JobState::running) return running_text(caretaker.inventory(), state, *job);
  REMUDA_ASSIGN(const auto ended, caretaker.pool().find(id));
  if (!ended) return usage_error(fmt::format("there is no job {}", id));
  return fmt::format("Job {} ended {} ago: {}\n", id, duration_text(wall_s() - ended->ended_s), ended->why);
}

struct JobsFlags {
  MachineFlags machine;
  std::vector<int64_t> jobs;
};

Result<int> why(const JobsFlags& flags) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  for (const int64_t job : flags.jobs) {
    REMUDA_ASSIGN(const std::string text, why_text(caretaker, job));
    fmt::print("{}", text);
  }
  return 0;
}

void add_reader(Program& program, const char* name, const char* summary, const char* footer,
                Result<int> (*action)(const QueueFlags&)) {
  auto flags = std::make_shared<QueueFlags>();
  CLI::App& command = program.add(name, summary, [flags, action] { return action(*flags); });
  command.add_flag("--json", flags->json, "Print as JSON");
  add_machine_options(command, flags->machine);
  command.footer(footer);
}

}  // namespace

Json pool_json(const pool::PoolState& state, const std::vector<place::Held>& foreign, const Inventory& inventory,
               double now_s) {
  Json leases = Json::array(), waiting = Json::array();
  for (const pool::Lease& lease : state.leases) {
    Json one = fields::write(lease);
    one["label"] = label_of(inventory, lease.device);
    add_sharing(state, lease, inventory, one);
    if (const pool::Job* job = state.find(lease.job)) {
      one["user"] = job->user;
      one["name"] = job->name;
      one["command"] = job->command;
      one["devices_enforced"] = job->devices_enforced;
      if (!job->cgroup.empty()) one["cgroup"] = job->cgroup;
    }
    leases.push_back(std::move(one));
  }
  for (const place::Held& held : foreign) {
    Json one{{"device", held.device},
             {"share", held.share},
             {"label", label_of(inventory, held.device)},
             {"holder", held.holder}};
    if (held.since_s) one["since_s"] = *held.since_s;
    leases.push_back(std::move(one));
  }
  for (const pool::Job* job : waiting_jobs(state, {}, now_s)) waiting.push_back(to_json(*job));
  return Json{{"leases", std::move(leases)}, {"waiting", std::move(waiting)}};
}

std::string leases_text(const pool::PoolState& state, const std::vector<place::Held>& foreign,
                        const Inventory& inventory, double now_s, size_t width) {
  if (state.leases.empty() && foreign.empty()) return "Nobody holds a device\n";
  Table table({"DEVICE", "SHARE", "USER", "JOB", "FOR", "LEFT", "WHAT"});
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    table.add({label_of(inventory, lease.device), share_text(state, lease, inventory), job ? job->user : "",
               std::to_string(lease.job), duration_text(now_s - lease.since_s), until_text(lease.until_s, now_s),
               job ? what_text(*job) : ""});
  }
  for (const place::Held& held : foreign)
    table.add({label_of(inventory, held.device), fmt::format("{:.0f} %", held.share * 100), printable(held.holder),
               "no lease", held.since_s ? duration_text(now_s - *held.since_s) : "-", "-", ""});
  return table.text(width);
}

std::string queue_text(const pool::PoolState& state, double now_s, size_t width) {
  const auto jobs = waiting_jobs(state, {}, now_s);
  if (jobs.empty()) return "Nobody waits\n";
  Table table({"JOB", "USER", "PRIORITY", "DEVICES", "FOR", "WHAT", "WHY"});
  for (const pool::Job* job : jobs)
    table.add({std::to_string(job->id), job->user, std::to_string(job->priority), std::to_string(job->request.count),
               duration_text(now_s - job->submitted_s), what_text(*job), job->why});
  return table.text(width);
}

Result<int> cancel_jobs(const MachineFlags& machine, const std::vector<int64_t>& jobs) {
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(machine));
  const auto cancel_all = [&](pool::PoolState& state) -> Result<void> {
    for (const int64_t job : jobs) REMUDA_TRY(cancel(state, job, static_cast<int>(::getuid()), wall_s()));
    return {};
  };
  REMUDA_TRY(caretaker.change(cancel_all, jobs));
  return 0;
}

void add_ps(Program& program) {
  add_reader(program, "ps", "Show who holds which device",
             "Devices that a process uses without a lease are shown too; nobody is given those.\n\n"
             "Examples:\n  remuda ps         a line for each device that somebody has\n"
             "  remuda ps --json  leases and waiting jobs, for programs\n",
             ps);
}

void add_queue(Program& program) {
  add_reader(program, "queue", "Show the jobs that wait, and why",
             "In the order of their turns: by priority, then whose user had least lately, then by arrival.\n\n"
             "On a terminal long texts are cut to its width; `remuda why JOB` says all.\n\n"
             "Examples:\n  remuda queue         a line for each job that waits\n"
             "  remuda queue --json  all that is known of them, for programs\n",
             queue);
}

void add_why(Program& program) {
  auto flags = std::make_shared<JobsFlags>();
  CLI::App& command = program.add("why", "Say why a job waits, or how it ended", [flags] { return why(*flags); });
  command.add_option("JOB", flags->jobs, "Number of the job")->required();
  add_machine_options(command, flags->machine);
  command.footer("Examples:\n  remuda why 12\n");
}

void add_cancel(Program& program) {
  auto flags = std::make_shared<JobsFlags>();
  CLI::App& command = program.add("cancel", "End jobs, waiting or running",
                                  [flags] { return cancel_jobs(flags->machine, flags->jobs); });
  command.add_option("JOB", flags->jobs, "Numbers of the jobs")->required();
  add_machine_options(command, flags->machine);
  command.footer(
      "A running job gets its stop signal, and SIGKILL after its grace time. The number of an array ends all its "
      "jobs.\n\n"
      "Examples:\n  remuda cancel 12 13\n");
}

}  // namespace remuda::cli

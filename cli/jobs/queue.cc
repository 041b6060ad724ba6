#include "cli/jobs/queue.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/jobs/array_jobs.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/waiting.h"
#include "cli/subcommands.h"
#include "cli/terminal.h"
#include "device/fields.h"
#include "place/host.h"
#include "pool/admission.h"
#include "pool/outlook.h"
#include "share/job_sharing.h"

namespace remuda::cli {
namespace {

struct QueueFlags {
  MachineFlags machine;
  bool json = false;
};

std::string until_text(double until_s, double now_s) { return until_s > 0 ? duration_text(until_s - now_s) : "-"; }

/// Adds how the device is shared, and which limits are enforced; nothing for a whole one.
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

/// Adds the job's part of the host, and what keeps it to that; nothing where it has none.
void add_host(const pool::Job& job, Json& json) {
  if (!job.cores.empty()) json["cores"] = job.cores;
  if (job.request.host_memory_bytes > 0) json["host_memory_bytes"] = job.request.host_memory_bytes;
  if (wants_host(job.request)) json["host"] = fields::write(job.host);
}

/// "8 cores, 32 GiB", of the first line of the job alone.
std::string host_text(const pool::PoolState& state, const pool::Lease& lease) {
  const pool::Job* job = state.find(lease.job);
  const auto first = std::ranges::find(state.leases, lease.job, &pool::Lease::job);
  if (!job || !wants_host(job->request) || &*first != &lease) return "";
  std::string text = job->cores.empty() ? "" : counted(static_cast<double>(job->cores.size()), "core");
  if (const int64_t bytes = job->request.host_memory_bytes; bytes > 0)
    text += (text.empty() ? "" : ", ") + amount_text(bytes);
  return text;
}

/// "(idle: warned) ", which `remuda why` explains; empty for a job that works.
std::string idle_mark(const pool::Job& job) {
  return job.idle.step == pool::IdleStep::none ? "" : fmt::format("(idle: {}) ", to_string(job.idle.step));
}

/// Adds the device's current load, as far as it is known.
void add_load(const Inventory& inventory, const std::string& id, Json& json) {
  const Device* device = inventory.find(id);
  if (!device) return;
  if (device->status.busy.has_value()) json["busy"] = device->status.busy.value();
  if (device->status.memory_used_bytes.has_value())
    json["memory_used_bytes"] = device->status.memory_used_bytes.value();
}

std::string busy_text(const Device& device) {
  const Reading<double>& busy = device.status.busy;
  return busy.has_value() ? fmt::format("{:.0f} %", 100 * busy.value()) : "-";
}

/// "12 of 48 GiB" of the whole device, as far as it is known.
std::string memory_text(const Device& device) {
  const Reading<int64_t>&used = device.status.memory_used_bytes, &all = device.memory_bytes;
  constexpr double kGiB = 1 << 30;
  const auto gib = [](const Reading<int64_t>& bytes) {
    return bytes.has_value() ? fmt::format("{:.0f}", static_cast<double>(bytes.value()) / kGiB) : "?";
  };
  return used.has_value() || all.has_value() ? fmt::format("{} of {} GiB", gib(used), gib(all)) : "-";
}

/// The states of the indices of each array that has not ended, by its job.
Result<ArrayTexts> array_texts(pool::Access& pool, const pool::PoolState& state) {
  ArrayTexts texts;
  for (const pool::Job& job : state.jobs) {
    if (!is_array(job) || job.state == pool::JobState::ended) continue;
    REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(pool, job.id));
    texts[job.id] = states_text(job, array_states(job, jobs));
  }
  return texts;
}

Result<int> ps(const QueueFlags& flags) {
  note_pool_obstacle(flags.machine);
  REMUDA_ASSIGN(run::Caretaker caretaker, open_pool(flags.machine));
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const std::vector<place::Held> foreign = held_without_job(caretaker, state);
  const double now_s = wall_s();
  if (flags.json)
    fmt::print("{}", to_pretty(pool_json(state, foreign, caretaker.inventory(), now_s, policy_or_none(caretaker))));
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
    for (const pool::Job* job : waiting_jobs(state, policy_or_none(caretaker), now_s)) list.push_back(to_json(*job));
    Json all{{"waiting", std::move(list)}, {"fairness", standings_json(state, policy_or_none(caretaker), now_s)}};
    fmt::print("{}", to_pretty(all));
  } else {
    REMUDA_ASSIGN(const ArrayTexts arrays, array_texts(caretaker.pool(), state));
    fmt::print("{}", queue_text({state, caretaker.inventory(), held_without_job(caretaker, state), arrays,
                                 policy_or_none(caretaker)},
                                now_s, table_width()));
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
               double now_s, const pool::Policy& policy) {
  Json leases = Json::array(), waiting = Json::array();
  for (const pool::Lease& lease : state.leases) {
    Json one = fields::write(lease);
    one["label"] = label_of(inventory, lease.device);
    add_load(inventory, lease.device, one);
    add_sharing(state, lease, inventory, one);
    if (const pool::Job* job = state.find(lease.job)) {
      one["user"] = job->user;
      one["name"] = job->name;
      if (job->array != 0) one["array"] = job->array, one["array_index"] = job->array_index;
      one["command"] = job->command;
      one["devices_enforced"] = job->devices_enforced;
      add_host(*job, one);
      if (job->idle.step != pool::IdleStep::none) one["idle"] = fields::write(job->idle);
      if (!job->cgroup.empty()) one["cgroup"] = job->cgroup;
    }
    leases.push_back(std::move(one));
  }
  for (const place::Held& held : foreign) {
    Json one{{"device", held.device},
             {"share", held.share},
             {"label", label_of(inventory, held.device)},
             {held.barred.empty() ? "holder" : "barred", held.barred.empty() ? held.holder : held.barred}};
    if (!held.barred.empty() && !held.holder.empty()) one["holder"] = held.holder;
    const auto drain = std::ranges::find(state.drains, held.device, &pool::Drain::device);
    if (!held.barred.empty() && drain != state.drains.end()) one["drained_by"] = drain->by;
    if (held.since_s) one["since_s"] = *held.since_s;
    add_load(inventory, held.device, one);
    leases.push_back(std::move(one));
  }
  for (const pool::Job* job : waiting_jobs(state, policy, now_s)) waiting.push_back(to_json(*job));
  return Json{{"leases", std::move(leases)},
              {"waiting", std::move(waiting)},
              {"fairness", standings_json(state, policy, now_s)}};
}

std::string leases_text(const pool::PoolState& state, const std::vector<place::Held>& foreign,
                        const Inventory& inventory, double now_s, size_t width) {
  if (state.leases.empty() && foreign.empty()) return "Nobody holds a device\n";
  const auto has_limit = [](const pool::Lease& lease) { return lease.until_s > 0; };
  const auto has_part = [](const pool::Lease& lease) { return lease.share < 1; };
  const bool shows_limits = std::ranges::any_of(state.leases, has_limit);
  const bool shows_shares = std::ranges::any_of(state.leases, has_part);
  const bool shows_host =
      std::ranges::any_of(state.leases, [&](const pool::Lease& lease) { return !host_text(state, lease).empty(); });
  std::vector<std::string> header{"DEVICE", "USER", "JOB", "FOR"};
  if (shows_limits) header.emplace_back("LEFT");
  if (shows_shares) header.emplace_back("SHARE");
  if (shows_host) header.emplace_back("HOST");
  header.insert(header.end(), {"BUSY", "MEMORY", "WHAT"});
  Table table(header);
  const auto add = [&](const std::string& device, std::vector<std::string> row, const std::string& left,
                       const std::string& share, const std::string& host, const std::string& what) {
    row.insert(row.begin(), label_of(inventory, device));
    if (shows_limits) row.push_back(left);
    if (shows_shares) row.push_back(share);
    if (shows_host) row.push_back(host);
    const Device* now = inventory.find(device);
    row.insert(row.end(), {now ? busy_text(*now) : "gone", now ? memory_text(*now) : "gone", what});
    table.add(std::move(row));
  };
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    add(lease.device,
        {job ? job->user : "", job ? name_of(*job) : std::to_string(lease.job), duration_text(now_s - lease.since_s)},
        until_text(lease.until_s, now_s), share_text(state, lease, inventory), host_text(state, lease),
        job ? idle_mark(*job) + what_text(*job) : "");
  }
  for (const place::Held& held : foreign)
    add(held.device,
        {held.holder.empty() ? "-" : printable(held.holder), held.barred.empty() ? "no lease" : "-",
         held.since_s ? duration_text(now_s - *held.since_s) : "-"},
        "-", fmt::format("{:.0f} %", held.share * 100), "", printable(held.barred));
  return table.text(width);
}

std::string queue_text(const Queue& queue, double now_s, size_t width) {
  auto jobs = waiting_jobs(queue.state, queue.policy, now_s);
  if (jobs.empty()) return "Nobody waits\n";
  const bool has_priorities = std::ranges::any_of(jobs, [](const pool::Job* job) { return job->priority != 0; });
  std::vector<std::string> header{"JOB", "USER", "FOR", "WHAT", "WHY"};
  if (has_priorities) header.insert(header.begin() + 2, "PRIORITY");
  Table table(header);
  table.cut_first(header.size() - 2);
  WaitingReasons reasons(queue.state, queue.inventory, queue.foreign, queue.policy, now_s);
  const pool::Job* before = nullptr;  // arrays get no devices themselves, so no job waits behind one
  for (const pool::Job* job : jobs) {
    const auto array = queue.arrays.find(is_array(*job) ? job->id : job->array);
    const bool is_in_row_of_array = array != queue.arrays.end() && !is_array(*job);
    if (!is_in_row_of_array) {
      const std::string why = array != queue.arrays.end() ? array->second : reasons.text(*job, before);
      std::vector<std::string> row{name_of(*job), job->user, duration_text(now_s - job->submitted_s), what_text(*job),
                                   why};
      if (has_priorities) row.insert(row.begin() + 2, std::to_string(job->priority));
      table.add(std::move(row));
    }
    if (!is_array(*job) && waits_first(queue.state, *job, queue.policy, now_s).empty()) before = job;
  }
  return table.text(width);
}

void add_ps(Program& program) {
  add_reader(program, "ps", "Show who holds which device",
             "BUSY and MEMORY are those of the whole device, now: at 0 % and with no memory in use, it is held for\n"
             "nothing. Devices that a process uses without a lease, or that are drained, are shown too; no job gets "
             "those.\n\n"
             "Examples:\n  remuda ps         a line for each device that is held\n"
             "  remuda ps --json  leases and waiting jobs, for programs\n",
             ps);
}

void add_queue(Program& program) {
  add_reader(program, "queue", "Show the jobs that wait, and why",
             "In the order of their turns: by priority, then whose user had least lately, then by arrival.\n\n"
             "An array is one line with the states of its indices. Long texts are cut to the width of the terminal;\n"
             "`remuda why JOB` says all.\n\n"
             "Examples:\n  remuda queue         a line for each job that waits\n"
             "  remuda queue --json  all that is known of them, for programs\n",
             queue);
}

}  // namespace remuda::cli

#include "pool/transitions.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "place/host.h"
#include "pool/admission.h"
#include "pool/usage.h"

namespace remuda::pool {
namespace {

constexpr size_t kLongestText = 4096;
constexpr std::string_view kCancelled = "was cancelled";
constexpr size_t kLongestWhy = 1024;  // the queue may hold thousands of them

std::string clean(const std::string& text, size_t longest = kLongestText) {
  if (text.size() <= longest) return printable(text);
  constexpr std::string_view kCut = "...";
  std::string cut = printable(std::string_view(text).substr(0, longest - kCut.size()));
  while (cut.ends_with('?')) cut.pop_back();  // left of a character that was cut in two
  return cut.append(kCut);
}

void sort_unique(std::vector<int64_t>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
}

/// How another user's job ended is that user's alone: it may name program and folder.
Result<void> check_after(const PoolState& state, const Job& job) {
  for (const int64_t id : awaited_by(job))
    if (!state.find(id)) return usage_error(fmt::format("there is no job {} to wait for", id));
  for (const int64_t id : job.after) {
    const Job* before = state.find(id);
    if (before->state != JobState::ended || succeeded(*before)) continue;
    const bool is_told = !before->why.empty() && (job.uid == before->uid || job.uid == 0);
    return usage_error(
        fmt::format("job {}, which should end well before, did not: {}", id, is_told ? before->why : "it failed"));
  }
  return {};
}

Result<void> check_possible(const Job& job, const Inventory& inventory) {
  const place::Layout layout(inventory);
  REMUDA_ASSIGN(const bool fits, place::fits(layout, job.request, {}));
  if (fits) return {};
  REMUDA_ASSIGN(const place::Answer answer, place::place(layout, job.request, {}));
  const auto* refusal = std::get_if<place::Refusal>(&answer);
  if (refusal && refusal->never) return tl::unexpected(Error{ErrorKind::never, refusal->sentence, -1});
  return {};
}

/// The job with what its array has been given since it was submitted.
Result<void> follow_array(const PoolState& state, Job& job) {
  if (job.array == 0) return {};
  const Job* array = state.find(job.array);
  if (!array || array->state == JobState::ended) return usage_error(fmt::format("array {} has ended", job.array));
  job.priority = array->priority;
  job.paused = array->paused;
  return {};
}

void remember_turn(Job& job, double now_s) {
  if (!job.begun) return;
  job.earlier.push_back({job.started_s, now_s, job.devices});
  size_t devices = 0;
  for (const Turn& turn : job.earlier) devices += turn.devices.size();
  while (job.earlier.size() > Job::kMostTurns || (devices > Job::kMostTurnDevices && job.earlier.size() > 1)) {
    devices -= job.earlier.front().devices.size();
    job.earlier.erase(job.earlier.begin());
  }
}

/// The job, for a user who may change it.
Result<Job*> open_job_of(PoolState& state, int64_t id, int uid) {
  Job* job = state.find(id);
  if (!job) return usage_error(fmt::format("there is no job {}", id));
  if (job->state == JobState::ended) return usage_error(fmt::format("job {} has ended already", name_of(*job)));
  if (uid != 0 && uid != job->uid) return usage_error(fmt::format("job {} belongs to {}", name_of(*job), job->user));
  return job;
}

/// The job itself; of an array, all that have not ended, too.
std::vector<Job*> with_jobs_of_array(PoolState& state, Job& job) {
  std::vector<Job*> jobs{&job};
  if (!is_array(job)) return jobs;
  for (const Job& one : state.jobs)
    if (one.array == job.id && one.id != job.id && one.state != JobState::ended) jobs.push_back(&state.jobs.edit(one));
  return jobs;
}

Result<void> set_paused(PoolState& state, int64_t id, int uid, bool paused) {
  REMUDA_ASSIGN(Job * job, open_job_of(state, id, uid));
  if (job->state == JobState::running)
    return usage_error(
        fmt::format("job {0} runs, and only one that waits can be paused; `remuda cancel {0}` ends it", name_of(*job)));
  if (job->paused == paused)
    return usage_error(fmt::format("job {} is {}paused", name_of(*job), paused ? "already " : "not "));
  for (Job* one : with_jobs_of_array(state, *job))
    if (one->state == JobState::waiting) one->paused = paused;
  return {};
}

/// How it ended, and who cancelled it, where cancel() has noted that: its keeper says first only that it was.
std::string why_ended(const Job& job, const std::string& why) {
  const bool says_by_whom = job.cancelled && job.why.starts_with(fmt::format("{} by ", kCancelled));
  if (!says_by_whom || !why.starts_with(kCancelled) || why.starts_with(job.why)) return why;
  return job.why + why.substr(kCancelled.size());
}

void end_job(PoolState& state, Job& job, const Ending& ending, const Policy& policy, double now_s) {
  clamp_future_times(state, now_s);
  const bool is_said = ending.ended_s > 0 && job.state == JobState::running;
  const double ended_s = is_said ? std::clamp(ending.ended_s, job.started_s, now_s) : now_s;
  if (job.state == JobState::running) charge(state, job, policy, ended_s, now_s);
  std::erase_if(state.leases, [&](const Lease& lease) { return lease.job == job.id; });
  job.state = JobState::ended;
  job.clock = {};
  job.preempted_by = 0;
  job.evicted.clear();
  job.idle = {};
  job.run = {};
  job.ended_s = ended_s;
  job.exit_status = ending.exit_status;
  job.signal = ending.signal;
  job.why = why_ended(job, ending.why);
  if (ending.memory_peak_bytes.was_read()) job.memory_peak_bytes = ending.memory_peak_bytes;
  clean_texts(job);
}

/// Back into the queue, as it was before it was granted its devices.
void give_back(PoolState& state, Job& job, const Policy& policy, double now_s) {
  const int restarts = job.restarts;
  requeue(state, job.id, policy, now_s);
  job.restarts = restarts;
}

std::string holder_text(const Job& job) { return fmt::format("{} (job {})", job.user, name_of(job)); }

}  // namespace

void clean_texts(Job& job) {
  constexpr size_t kMostArguments = 256;
  for (std::string* text : {&job.user, &job.name, &job.folder, &job.at_end, &job.mail}) *text = clean(*text);
  job.why = clean(job.why, kLongestWhy);
  if (job.command.size() > kMostArguments) {
    job.command.resize(kMostArguments);
    job.command.back() = "...";
  }
  for (std::string& argument : job.command) argument = clean(argument);
}

Result<int64_t> submit(PoolState& state, Job job, const Inventory& inventory, double now_s, const Policy& policy) {
  REMUDA_CHECK(job.keeper.pid > 0, "every job has a keeper");
  clean_texts(job);
  sort_unique(job.after);
  sort_unique(job.after_any);
  REMUDA_TRY(check_after(state, job));
  REMUDA_TRY(follow_array(state, job));
  const int64_t asked_bytes = job.request.host_memory_bytes;
  REMUDA_TRY(admit(state, job, policy));
  if (auto possible = check_possible(job, inventory); !possible) {
    const std::string rule = giver_of_host_memory(job, asked_bytes, policy);
    if (!rule.empty()) possible.error().message += fmt::format("; a job that asks for none is given some by {}", rule);
    return tl::unexpected(std::move(possible.error()));
  }
  clamp_future_times(state, now_s);
  job.id = state.next_job;
  job.state = JobState::waiting;
  job.preempted_by = job.passed = 0;
  job.evicted.clear();
  job.idle = {};
  job.run = {};
  job.unkept = job.keeper_failed = false;
  job.submitted_s = now_s;
  job.started_s = job.ended_s = 0;
  job.clock = {};
  job.cores.clear();
  REMUDA_TRY(parse_job(to_json(job), "the job"));  // a record that could not be read again is refused now
  ++state.next_job;
  const int64_t id = job.id;
  state.jobs.push_back(std::move(job));
  return id;
}

std::vector<const Job*> waiting_jobs(const PoolState& state, const Policy& policy, double now_s) {
  std::unordered_map<std::string, double> usage;
  std::vector<std::tuple<int64_t, double, int64_t, const Job*>> turns;
  for (const Job& job : state.jobs) {
    if (job.state != JobState::waiting) continue;
    const auto [known, is_new] = usage.try_emplace(job.user);
    if (is_new) known->second = usage_of(state, job.user, policy, now_s);
    turns.emplace_back(-int64_t{job.priority}, known->second, job.id, &job);
  }
  std::ranges::sort(turns);
  std::vector<const Job*> waiting(turns.size());
  std::ranges::transform(turns, waiting.begin(), [](const auto& turn) { return std::get<const Job*>(turn); });
  return waiting;
}

double begins_next(const PoolState& state, double now_s) {
  double next_s = kNever_s;
  for (const Job& job : state.jobs)
    if (job.state == JobState::waiting && job.begin_s > now_s) next_s = std::min(next_s, job.begin_s);
  return next_s;
}

place::Held held_of_host(const Job& job) {
  place::Held held = host_part(job.cores, job.request, holder_text(job));
  held.since_s = job.started_s;
  if (job.time_limit_s > 0) held.until_s = job.started_s + job.time_limit_s;
  return held;
}

std::vector<place::Held> held_by_leases(const PoolState& state, std::span<const int64_t> but) {
  std::vector<place::Held> held;
  for (const Lease& lease : state.leases) {
    const Job* job = state.find(lease.job);
    if (!job || std::ranges::find(but, lease.job) != but.end()) continue;
    held.push_back({lease.device, lease.share, holder_text(*job), lease.since_s,
                    lease.until_s > 0 ? std::optional(lease.until_s) : std::nullopt});
  }
  for (const Job& job : state.jobs) {
    if (job.state == JobState::running && wants_host(job.request) && std::ranges::find(but, job.id) == but.end())
      held.push_back(held_of_host(job));
  }
  return held;
}

void end(PoolState& state, int64_t id, const Ending& ending, const Policy& policy, double now_s) {
  Job* job = state.find(id);
  if (job && job->state != JobState::ended) end_job(state, *job, ending, policy, now_s);
}

void requeue(PoolState& state, int64_t id, const Policy& policy, double now_s) {
  Job* job = state.find(id);
  if (!job || job->state != JobState::running) return;
  end_job(state, *job, {.why = std::string(kCancelled)}, policy, now_s);
  if (job->cancelled) return;
  remember_turn(*job, now_s);
  job->state = JobState::waiting;
  job->started_s = job->ended_s = 0;
  job->processes.clear();
  job->begun = false;
  job->devices.clear();
  job->cores.clear();
  job->speeds.clear();
  job->passed = 0;
  job->cgroup.clear();
  job->devices_enforced = false;
  job->files_denied = 0;
  job->host = {};
  job->memory_peak_bytes = {};
  job->why.clear();
  ++job->restarts;
}

void give_way(PoolState& state, int64_t id, const Policy& policy, double now_s) {
  if (Job* job = state.find(id)) give_back(state, *job, policy, now_s);
}

void end_waiting(PoolState& state, int64_t id, const Ending& ending, const Policy& policy, double now_s) {
  Job* job = state.find(id);
  if (!job || job->state != JobState::waiting) return;
  job->cancelled = true;
  const bool has_end_to_report = !is_array(*job) && !(job->at_end.empty() && job->mail.empty());
  if (job->unkept && has_end_to_report)
    job->why = ending.why;
  else
    end_job(state, *job, ending, policy, now_s);
}

Result<void> cancel(PoolState& state, int64_t id, const Asker& who, double now_s, const Policy& policy) {
  REMUDA_ASSIGN(Job * job, open_job_of(state, id, who.uid));
  const std::string by = who.uid == job->uid ? "" : " by " + clean(who.name);
  for (Job* one : with_jobs_of_array(state, *job)) {
    if (one->unkept) give_back(state, *one, policy, now_s);     // nothing of it runs
    const bool is_again = std::exchange(one->cancelled, true);  // the first who did that stays the reason
    if (one->state == JobState::running && !is_again) one->why = by.empty() ? "" : fmt::format("{}{}", kCancelled, by);
    end_waiting(state, one->id, {.why = is_again ? one->why : fmt::format("{}{} while it waited", kCancelled, by)},
                policy, now_s);
  }
  return {};
}

std::vector<int64_t> select_jobs(const PoolState& state, const Selection& selection) {
  std::vector<int64_t> ids;
  for (const Job& job : state.jobs) {
    const bool is_open = job.state != JobState::ended && (job.array == 0 || is_array(job));
    const bool is_meant = (selection.name.empty() || job.name == selection.name) &&
                          (selection.user.empty() || job.user == selection.user);
    if (is_open && is_meant) ids.push_back(job.id);
  }
  return ids;
}

Result<void> reprioritize(PoolState& state, int64_t id, int priority, int uid, const Policy& policy) {
  REMUDA_ASSIGN(Job * job, open_job_of(state, id, uid));
  if (uid != 0) REMUDA_TRY(check_priority(*job, priority, policy));
  for (Job* one : with_jobs_of_array(state, *job)) one->priority = priority;
  return {};
}

Result<void> pause(PoolState& state, int64_t id, int uid) { return set_paused(state, id, uid, true); }

Result<void> resume(PoolState& state, int64_t id, int uid) { return set_paused(state, id, uid, false); }

void lose_keeper(PoolState& state, int64_t id) {
  Job* job = state.find(id);
  if (!job || job->state != JobState::waiting || !job->outlives_keeper) return;
  job->unkept = true;
}

void fail_keeper(PoolState& state, int64_t id, const Policy& policy, double now_s) {
  Job* job = state.find(id);
  if (!job || job->state == JobState::ended || !job->unkept) return;
  give_back(state, *job, policy, now_s);
  job->keeper_failed = true;
  if (!job->cancelled) job->why = kUnkept;
}

bool needs_keeper(const Job& job) {
  return job.unkept && (job.state == JobState::running || job.cancelled || job.keeper_failed);
}

Result<void> take_over(PoolState& state, int64_t id, int uid, const process::ProcessId& keeper) {
  if (keeper.pid <= 0) return usage_error("a keeper is a process");
  REMUDA_ASSIGN(Job * job, open_job_of(state, id, uid));
  if (uid != job->uid) return usage_error(fmt::format("job {} belongs to {}", name_of(*job), job->user));
  if (!job->unkept) return usage_error(fmt::format("job {} has a process that keeps it", name_of(*job)));
  job->unkept = job->keeper_failed = false;
  job->keeper = keeper;
  return {};
}

Result<void> drain(PoolState& state, Drain drain) {
  drain.reason = clean(drain.reason);
  if (drain.reason.empty()) return usage_error("a drain needs a reason, which others will read");
  const auto at = std::ranges::lower_bound(state.drains, drain.device, {}, &Drain::device);
  if (at != state.drains.end() && at->device == drain.device)
    *at = std::move(drain);
  else
    state.drains.insert(at, std::move(drain));
  return {};
}

void leave_host(PoolState& state, const std::vector<std::string>& devices, const Drain& asked) {
  for (const std::string& device : devices) {
    if (std::ranges::find(state.drains, device, &Drain::device) != state.drains.end()) continue;
    Drain one = asked;
    one.device = device;
    (void)drain(state, std::move(one));
  }
  for (const Job& job : state.jobs)
    if (job.state == JobState::running) state.jobs.edit(job).evicted = clean(asked.reason, kLongestWhy);
}

Result<void> undrain(PoolState& state, const std::string& device, const std::string& label) {
  if (std::erase_if(state.drains, [&](const Drain& one) { return one.device == device; }) > 0) return {};
  return usage_error(fmt::format("{} is not drained", label));
}

std::vector<int64_t> reap(PoolState& state, const std::function<bool(const process::ProcessId&)>& lives,
                          const std::function<bool(const Job&)>& has_orphans, const Policy& policy, double now_s) {
  std::vector<int64_t> orphaned;
  for (const Job& job : state.jobs) {
    if (job.state == JobState::ended || lives(job.keeper)) continue;
    const bool runs = job.state == JobState::running;
    if (runs && (std::ranges::any_of(job.processes, lives) || has_orphans(job)))
      orphaned.push_back(job.id);
    else
      end_job(state, state.jobs.edit(job), {.exit_status = kEndedByRemuda, .why = "the process that kept it is gone"},
              policy, now_s);
  }
  return orphaned;
}

}  // namespace remuda::pool

#include "agent/rules.h"

#include <algorithm>
#include <fmt/format.h>

#include "agent/holds.h"
#include "agent/record_size.h"

namespace remuda::agent {
namespace {

constexpr int kMostPriority = 1000;

/// Whether the agent can start a process that goes on with a job of this caller: of a user without a name it cannot.
bool can_be_started(const Caller& caller, const policy::User& user) {
  return caller.can_be_started && user.name != std::to_string(caller.uid);
}

/// With what a user decides, and nothing else.
pool::Job asked_by(const pool::Job& said, const Caller& caller, const policy::User& user, const std::string& request) {
  pool::Job job{.user = user.name,
                .uid = caller.uid,
                .groups = user.groups,
                .name = said.name,
                .request = said.request,
                .priority = said.priority,
                .preemptible = said.preemptible,
                .time_limit_s = std::max(0.0, said.time_limit_s),
                .begin_s = std::max(0.0, said.begin_s),
                .after = said.after,
                .after_any = said.after_any,
                .outlives_keeper = said.outlives_keeper && can_be_started(caller, user),
                .array = said.array,
                .array_index = std::max(0, said.array_index),
                .keeper = caller.process,
                .command = said.command,
                .folder = said.folder,
                .log = said.log,
                .at_end = said.at_end,
                .mail = said.mail,
                .why = said.why};
  job.grace_s = std::clamp(said.grace_s, 0.0, kLongestGrace_s);
  job.submission = request;
  return job;
}

Result<void> check_priority(int priority) {
  if (priority >= -kMostPriority && priority <= kMostPriority) return {};
  return usage_error(fmt::format("a priority is between {} and {}", -kMostPriority, kMostPriority));
}

Result<void> check_room(const Caller& caller, const pool::Job& asked, const pool::PoolState& state) {
  int own = 0, all = 0;
  size_t bytes = record_size(asked), awaited = awaited_by(asked).size();
  for (const pool::Job& job : state.jobs) {
    if (job.state != pool::JobState::waiting) continue;
    ++all;
    if (job.uid != caller.uid) continue;
    ++own;
    bytes += record_size(job);
    awaited += job.after.size() + job.after_any.size();
  }
  if (own >= kMostWaitingOfUser)
    return usage_error(fmt::format("{} of your jobs wait, and no user may have more", kMostWaitingOfUser));
  if (awaited > kMostAwaitedOfUser)
    return usage_error(
        fmt::format("your waiting jobs wait for {} others together, and no user's may for more", kMostAwaitedOfUser));
  if (all >= kMostWaiting) return usage_error(fmt::format("{} jobs wait, and no more are taken", kMostWaiting));
  if (bytes > kMostBytesOfUser)
    return usage_error(
        fmt::format("your waiting jobs take {} MiB, and those of a user may not take more", kMostBytesOfUser >> 20));
  return {};
}

Result<void> check_bounds(const pool::Job& job) {
  if (awaited_by(job).size() > kMostAwaited)
    return usage_error(fmt::format("a job waits for {} others at the most", kMostAwaited));
  if (record_size(job) > kLargestRecord / 2)
    return usage_error(fmt::format("the job takes {} KiB to describe, and {} KiB are the most", record_size(job) >> 10,
                                   kLargestRecord >> 11));
  if (job.request.share < kSmallestShare)
    return usage_error(fmt::format("a part of a device is at least {}", kSmallestShare));
  return {};
}

Result<void> check_named(const std::vector<int64_t>& jobs) {
  if (jobs.size() <= kMostNamed) return {};
  return usage_error(fmt::format("{} jobs at the most are named at once", kMostNamed));
}

Result<void> admit_to(pool::Submit& asked, const Caller& caller, const policy::User& user, const std::string& request,
                      const pool::PoolState& state) {
  asked.job = asked_by(asked.job, caller, user, request);
  const pool::Job& job = asked.job;
  REMUDA_TRY(check_priority(job.priority));
  REMUDA_TRY(check_bounds(job));
  if (asked.stands_for_array) asked.job.array = 0;
  if (job.array != 0) {
    const pool::Job* array = state.find(job.array);
    if (!array || !is_array(*array) || array->uid != caller.uid)
      return usage_error(fmt::format("job {} is no array of yours", job.array));
  }
  return check_room(caller, job, state);
}

Result<void> admit_to(pool::StartJobs&, const Caller&, const pool::PoolState&) { return {}; }
Result<void> admit_to(pool::Cancel& asked, const Caller&, const pool::PoolState&) { return check_named(asked.jobs); }
Result<void> admit_to(pool::CancelSelected&, const Caller&, const pool::PoolState&) { return {}; }
Result<void> admit_to(pool::Pause& asked, const Caller&, const pool::PoolState&) { return check_named(asked.jobs); }
Result<void> admit_to(pool::Resume& asked, const Caller&, const pool::PoolState&) { return check_named(asked.jobs); }

Result<void> admit_to(pool::Reprioritize& asked, const Caller&, const pool::PoolState&) {
  REMUDA_TRY(check_named(asked.jobs));
  return check_priority(asked.priority);
}

/// Whose job it is, the transition decides.
Result<void> admit_to(pool::TakeOver& asked, const Caller& caller, const pool::PoolState&) {
  asked.keeper = caller.process;
  return {};
}

Result<void> check_operator(const Caller& caller) {
  return caller.is_admin
             ? Result<void>{}
             : usage_error("an agent serves this pool, so only root may drain devices, and grant them again");
}

Result<void> admit_to(pool::DrainDevices&, const Caller& caller, const pool::PoolState&) {
  return check_operator(caller);
}

Result<void> admit_to(pool::UndrainDevices&, const Caller& caller, const pool::PoolState&) {
  return check_operator(caller);
}

Result<void> admit_to(pool::LeaveHost&, const Caller& caller, const pool::PoolState&) { return check_operator(caller); }

Result<void> admit_to(pool::RecordIdle&, const Caller&, const pool::PoolState&) {
  return usage_error("only the agent tells jobs that their devices are idle");
}

template <typename Word>
Result<void> admit_to(Word& asked, const Caller& caller, const pool::PoolState& state) {
  const pool::Job* job = state.find(asked.job);
  if (job && job->uid == caller.uid && job->keeper == caller.process) return {};
  return usage_error(fmt::format("job {} is kept by another process", asked.job));
}

Result<void> check_daemons(const pool::RecordDaemons& asked, const pool::PoolState& state) {
  for (const std::string& device : asked.devices) {
    const bool is_held = std::ranges::any_of(
        state.leases, [&](const pool::Lease& lease) { return lease.job == asked.job && lease.device == device; });
    if (!is_held) return usage_error(fmt::format("job {} does not hold {}", asked.job, device));
  }
  return {};
}

}  // namespace

Result<void> admit(pool::Operation& operation, const Caller& caller, const policy::User& user,
                   const std::string& request, const pool::PoolState& state) {
  if (auto* submission = std::get_if<pool::Submit>(&operation))
    return admit_to(*submission, caller, user, request, state);
  if (auto* drain = std::get_if<pool::DrainDevices>(&operation)) drain->by = user.name;
  if (auto* daemons = std::get_if<pool::RecordDaemons>(&operation)) daemons->folder.clear();  // is the agent's word
  auto admitted = std::visit(
      [&](auto& asked) -> Result<void> {
        if constexpr (std::is_same_v<std::decay_t<decltype(asked)>, pool::Submit>)
          return {};
        else
          return admit_to(asked, caller, state);
      },
      operation);
  if (!admitted) return admitted;
  if (const auto* daemons = std::get_if<pool::RecordDaemons>(&operation)) return check_daemons(*daemons, state);
  if (const auto* explained = std::get_if<pool::Explain>(&operation);
      explained && !is_array(*state.find(explained->job)))
    return usage_error(fmt::format("job {} is no array", explained->job));
  return {};
}

/// The words of an array's command that say which indices it has stay: they are no secret, and its states are told by
/// them.
pool::Job visible_to(const Caller& caller, const pool::Job& job) {
  pool::Job seen = job;
  seen.submission.clear();
  if (caller.is_admin || caller.uid == job.uid) return seen;
  if (job.state == pool::JobState::ended) seen.why.clear();  // it may name program and folder
  seen.command.clear();
  if (is_array(job) && job.command.size() >= 2) seen.command.assign(job.command.begin(), job.command.begin() + 2);
  seen.folder.clear();
  seen.log.clear();
  seen.at_end.clear();
  seen.mail.clear();
  seen.processes.clear();
  seen.cgroup.clear();
  seen.daemon_folder.clear();
  seen.host = {};
  seen.keeper = {};
  return seen;
}

}  // namespace remuda::agent

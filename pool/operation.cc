#include "pool/operation.h"

#include <algorithm>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "device/fields.h"
#include "place/place.h"
#include "pool/logs.h"

namespace remuda::pool {
namespace {

constexpr const char* kWhich = "operation";

/// As a record keeps it; what is longer or has control characters could not be read again.
std::string clean_why(const std::string& why) {
  Job job{.why = why};
  clean_texts(job);
  return job.why;
}

/// What ends, ends also where the policy's file is wrong.
Policy policy_of(const Circumstances& at) {
  if (at.policy) return *at.policy;
  return at.last_policy ? *at.last_policy : Policy{};
}

Result<Applied> apply_to(PoolState& state, const Submit& asked, const Circumstances& at) {
  if (!at.policy) return tl::unexpected(at.policy.error());
  REMUDA_ASSIGN(const int64_t id, submit(state, asked.job, at.inventory, at.now_s, *at.policy));
  Job& job = *state.find(id);
  if (asked.stands_for_array) {
    job.array = id;
    job.why = asked.job.why;
  }
  if (!asked.log_folder.empty() && job.log.empty()) job.log = pool_log_path(asked.log_folder, id);
  return Applied{.job = id, .refused = {}, .cancelled = {}};
}

Result<Applied> apply_to(PoolState&, const StartJobs&, const Circumstances&) { return Applied{}; }

Result<Applied> apply_to(PoolState& state, const RecordProcesses& asked, const Circumstances&) {
  if (Job* job = state.find(asked.job)) {
    job->processes = asked.processes;
    job->begun = true;
  }
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const RecordConfinement& asked, const Circumstances&) {
  Job* job = state.find(asked.job);
  if (!job) return Applied{};
  job->cgroup = asked.cgroup;
  job->devices_enforced = asked.devices_enforced;
  job->files_denied = asked.files_denied;
  job->host = asked.host;
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const RecordDaemons& asked, const Circumstances&) {
  if (Job* job = state.find(asked.job)) {
    job->daemons = asked.devices;
    if (!asked.folder.empty()) job->daemon_folder = asked.folder;
  }
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const Explain& asked, const Circumstances&) {
  if (Job* job = state.find(asked.job)) job->why = asked.why;
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const CountRestart& asked, const Circumstances&) {
  if (Job* job = state.find(asked.job)) ++job->restarts;
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const Requeue& asked, const Circumstances& at) {
  requeue(state, asked.job, policy_of(at), at.now_s);
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const GiveWay& asked, const Circumstances& at) {
  if (!asked.waits) {
    end(state, asked.job, {.exit_status = place::kNotNow, .why = asked.why}, policy_of(at), at.now_s);
    return Applied{};
  }
  give_way(state, asked.job, policy_of(at), at.now_s);
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const TakeOver& asked, const Circumstances& at) {
  REMUDA_TRY(take_over(state, asked.job, at.uid, asked.keeper));
  return Applied{.job = asked.job, .refused = {}, .cancelled = {}};
}

Result<Applied> apply_to(PoolState& state, const End& asked, const Circumstances& at) {
  end(state, asked.job, asked.ending, policy_of(at), at.now_s);
  return Applied{};
}

bool has_ended(const PoolState& state, int64_t id) {
  const Job* job = state.find(id);
  return job && job->state == JobState::ended;
}

/// A job that is named twice, or with its array, is ended by the first of these names.
Result<Applied> apply_to(PoolState& state, const Cancel& asked, const Circumstances& at) {
  std::vector<int64_t> had_ended;
  std::ranges::copy_if(asked.jobs, std::back_inserter(had_ended), [&](int64_t id) { return has_ended(state, id); });
  Applied applied;
  for (const int64_t id : asked.jobs) {
    const auto cancelled = cancel(state, id, {at.uid, at.user}, at.now_s, policy_of(at));
    const bool was_open = std::ranges::find(had_ended, id) == had_ended.end();
    if (!cancelled && !(was_open && has_ended(state, id))) applied.refused.push_back(cancelled.error().message);
  }
  return applied;
}

Result<Applied> apply_to(PoolState& state, const CancelSelected& asked, const Circumstances& at) {
  Applied applied;
  applied.cancelled = select_jobs(state, {.name = asked.name, .user = asked.user});
  for (const int64_t id : applied.cancelled) REMUDA_TRY(cancel(state, id, {at.uid, at.user}, at.now_s, policy_of(at)));
  return applied;
}

Result<Applied> apply_to(PoolState& state, const Reprioritize& asked, const Circumstances& at) {
  if (!at.policy) return tl::unexpected(at.policy.error());
  for (const int64_t id : asked.jobs) REMUDA_TRY(reprioritize(state, id, asked.priority, at.uid, *at.policy));
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const Pause& asked, const Circumstances& at) {
  for (const int64_t id : asked.jobs) REMUDA_TRY(pause(state, id, at.uid));
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const Resume& asked, const Circumstances& at) {
  for (const int64_t id : asked.jobs) REMUDA_TRY(resume(state, id, at.uid));
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const DrainDevices& asked, const Circumstances& at) {
  for (const std::string& id : asked.devices) {
    if (!at.inventory.find(id)) return usage_error(fmt::format("there is no device '{}'", printable(id)));
    REMUDA_TRY(drain(state, {.device = id, .reason = asked.reason, .by = asked.by, .since_s = at.now_s}));
  }
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const UndrainDevices& asked, const Circumstances& at) {
  for (const std::string& id : asked.devices) {
    const Device* device = at.inventory.find(id);
    REMUDA_TRY(undrain(state, id, device ? device->label() : printable(id)));
  }
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const LeaveHost& asked, const Circumstances& at) {
  std::vector<std::string> devices;
  for (const Device& device : at.inventory.devices) devices.push_back(device.id);
  leave_host(state, devices, {.device = "", .reason = asked.why, .by = asked.by, .since_s = at.now_s});
  return Applied{};
}

Result<Applied> apply_to(PoolState& state, const RecordIdle& asked, const Circumstances&) {
  Job* job = state.find(asked.job);
  if (!job || job->state != JobState::running) return Applied{};
  job->idle = asked.notice;
  job->idle.text = clean_why(asked.notice.text);
  if (job->idle.step == IdleStep::released && job->evicted.empty()) job->evicted = job->idle.text;
  return Applied{};
}

/// When it was heard of is not for the job to say. A part of a device that it does not hold says nothing. A keeper is
/// its user's process, and may say anything.
Result<Applied> apply_to(PoolState& state, const RecordRun& asked, const Circumstances& at) {
  Job* job = state.find(asked.job);
  if (!job || job->state != JobState::running) return Applied{};
  job->run = asked.notice;
  job->run.at_s = at.now_s;
  std::erase_if(job->run.parts, [&](const RunPart& part) {
    return std::ranges::find(job->devices, part.device) == job->devices.end();
  });
  job->run.bound();
  return Applied{};
}

template <typename Kind, typename... Others>
constexpr bool is_one_of = (std::is_same_v<Kind, Others> || ...);

template <size_t Index = 0>
Result<Operation> parse_as(const std::string& which, const Json& json, const std::string& where) {
  if constexpr (Index == std::variant_size_v<Operation>) {
    return usage_error(fmt::format("{}.{} is '{}', which is none", where, kWhich, printable(which)));
  } else {
    using Kind = std::variant_alternative_t<Index, Operation>;
    if (which != Kind::kName) return parse_as<Index + 1>(which, json, where);
    Kind asked;
    REMUDA_TRY(fields::read(json, where, asked));
    if constexpr (std::is_same_v<Kind, Submit>) {
      if (!json.contains("job")) return usage_error(where + " lacks 'job'");
      REMUDA_ASSIGN(asked.job, parse_job(json["job"], where + ".job"));
    }
    return Operation(std::move(asked));
  }
}

}  // namespace

Json to_json(const Operation& operation) {
  return std::visit(
      [](const auto& asked) {
        using Kind = std::decay_t<decltype(asked)>;
        Json json{{kWhich, Kind::kName}};
        json.update(fields::write(asked));
        if (json.contains("why")) json["why"] = clean_why(json["why"]);
        if constexpr (std::is_same_v<Kind, Submit>) {
          Job job = asked.job;
          clean_texts(job);
          json["job"] = to_json(job);
        }
        return json;
      },
      operation);
}

Result<Operation> parse_operation(const Json& json, const std::string& where) {
  if (!json.is_object()) return usage_error(where + " must be an object");
  const auto which = json.find(kWhich);
  if (which == json.end() || !which->is_string()) return usage_error(fmt::format("{} lacks '{}'", where, kWhich));
  return parse_as(which->get<std::string>(), json, where);
}

Result<Applied> apply(PoolState& state, const Operation& operation, const Circumstances& circumstances) {
  return std::visit([&](const auto& asked) { return apply_to(state, asked, circumstances); }, operation);
}

bool starts_jobs(const Operation& operation) {
  return std::visit(
      []<typename Kind>(const Kind&) {
        return is_one_of<Kind, Submit, StartJobs, TakeOver, Cancel, CancelSelected, Reprioritize, Pause, Resume,
                         DrainDevices, UndrainDevices>;
      },
      operation);
}

Result<void> accept(const PoolState& state, const Operation& operation, const Applied& applied) {
  const auto* asked = std::get_if<Submit>(&operation);
  if (!asked || asked->waits || asked->stands_for_array) return {};
  const Job* job = state.find(applied.job);
  if (job && job->state == JobState::running) return {};
  return tl::unexpected(Error{ErrorKind::not_now, job ? job->why : "it cannot start now", -1});
}

std::vector<int64_t> ended_jobs_for(const Operation& operation) {
  return std::visit(
      []<typename Kind>(const Kind& asked) -> std::vector<int64_t> {
        if constexpr (std::is_same_v<Kind, Submit>) return awaited_by(asked.job);
        if constexpr (is_one_of<Kind, Cancel, Reprioritize, Pause, Resume>) return asked.jobs;
        return {};
      },
      operation);
}

}  // namespace remuda::pool

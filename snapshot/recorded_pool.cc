#include "snapshot/recorded_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pool/admission.h"
#include "pool/request_json.h"
#include "pool/transitions.h"
#include "snapshot/entry.h"

namespace remuda::snapshot {
namespace {

std::vector<Json> objects_in(const Json& of, const char* key) {
  std::vector<Json> objects;
  const auto found = of.find(key);
  if (found == of.end() || !found->is_array()) return objects;
  std::ranges::copy_if(*found, std::back_inserter(objects), [](const Json& one) { return one.is_object(); });
  return objects;
}

bool is_of_job(const Json& lease) { return value_in<int64_t>(lease, "job", 0) > 0; }

/// Adds the lease, and at the first one of a job that one.
void add_lease(const Json& entry, pool::PoolState& state) {
  pool::Lease lease{.job = value_in<int64_t>(entry, "job", 0),
                    .device = value_in<std::string>(entry, "device", ""),
                    .share = value_in(entry, "share", 1.0),
                    .since_s = value_in(entry, "since_s", 0.0),
                    .until_s = value_in(entry, "until_s", 0.0)};
  pool::Job* job = state.find(lease.job);
  if (!job) {
    state.jobs.insert({.id = lease.job,
                       .user = value_in<std::string>(entry, "user", ""),
                       .name = value_in<std::string>(entry, "name", ""),
                       .started_s = lease.since_s,
                       .time_limit_s = lease.until_s > 0 ? lease.until_s - lease.since_s : 0,
                       .state = pool::JobState::running});
    job = state.find(lease.job);
    job->request.count = 0;
  }
  ++job->request.count;
  job->devices.push_back(lease.device);
  state.leases.push_back(std::move(lease));
}

void add_waiting(const Json& entry, pool::PoolState& state) {
  Json request{{"count", 1}, {"link", "any"}, {"share", 1}};
  if (entry.contains("request") && entry["request"].is_object()) request.update(entry["request"]);
  auto parsed = pool::parse_request(request, "request");
  pool::Job job{.id = value_in<int64_t>(entry, "id", 0),
                .user = value_in<std::string>(entry, "user", ""),
                .name = value_in<std::string>(entry, "name", ""),
                .priority = value_in(entry, "priority", 0),
                .submitted_s = value_in(entry, "submitted_s", 0.0),
                .time_limit_s = value_in(entry, "time_limit_s", 0.0),
                .begin_s = value_in(entry, "begin_s", 0.0),
                .paused = value_in(entry, "paused", false),
                .array = value_in<int64_t>(entry, "array", 0)};
  if (!parsed || job.id <= 0 || state.find(job.id)) return;
  job.request = std::move(*parsed);
  for (const Json& id : entry.value("after", Json::array()))
    if (id.is_number_integer()) job.after.push_back(id);
  for (const Json& id : entry.value("after_any", Json::array()))
    if (id.is_number_integer()) job.after_any.push_back(id);
  state.jobs.insert(std::move(job));
}

/// Those that are over, in the order in which they ended: they ran, so that their users have used what they had.
void add_past(const Json& host, const pool::Policy& policy, pool::PoolState& state) {
  std::vector<Json> past = objects_in(host, "past");
  std::erase_if(past, [](const Json& one) { return !is_of_job(one); });
  const auto key = [](const Json& one) {
    return std::pair(value_in(one, "ended_s", 0.0), value_in<int64_t>(one, "job", 0));
  };
  std::ranges::stable_sort(past, {}, key);
  for (size_t i = 0; i < past.size(); ++i) {
    if (const pool::Job* known = std::as_const(state).find(key(past[i]).second);
        known && known->state == pool::JobState::ended)
      continue;  // it has run more than once, and stands there as it ended first
    add_lease(past[i], state);
    if (i + 1 == past.size() || key(past[i + 1]) != key(past[i]))
      end(state, key(past[i]).second, {}, policy, key(past[i]).first);
  }
  state.jobs.erase_if([](const pool::Job& job) { return job.state == pool::JobState::ended; });
}

}  // namespace

RecordedPool recorded_pool(const Json& host, const pool::Policy& policy) {
  RecordedPool recorded;
  pool::PoolState& state = recorded.state;
  const Json jobs = host.value("jobs", Json::object());
  add_past(host, policy, state);
  for (const Json& lease : objects_in(jobs, "leases")) {
    if (is_of_job(lease))
      add_lease(lease, state);
    else
      recorded.held.push_back({.device = value_in<std::string>(lease, "device", ""),
                               .share = value_in(lease, "share", 1.0),
                               .holder = value_in<std::string>(lease, "holder", ""),
                               .barred = value_in<std::string>(lease, "barred", "")});
  }
  for (const Json& job : objects_in(jobs, "waiting")) add_waiting(job, state);
  for (const Json& drain : objects_in(host, "drains"))
    state.drains.push_back({.device = value_in<std::string>(drain, "device", ""),
                            .reason = value_in<std::string>(drain, "reason", ""),
                            .by = value_in<std::string>(drain, "by", "")});
  std::ranges::move(held_by_drains(state), std::back_inserter(recorded.held));
  state.next_job = state.jobs.empty() ? 1 : state.jobs.back().id + 1;
  return recorded;
}

}  // namespace remuda::snapshot

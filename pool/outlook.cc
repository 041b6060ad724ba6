#include "pool/outlook.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "device/fields.h"
#include "place/layout.h"
#include "place/place.h"
#include "pool/admission.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

size_t waiting_in(const PoolState& state) {
  return static_cast<size_t>(std::ranges::count(state.jobs, JobState::waiting, &Job::state));
}

/// Tries requests in the place of a job's. A pass of the scheduler takes a millisecond, so that is tried of those alone
/// for which there is room.
class Trial {
 public:
  Trial(const Scene& scene, const Job& job)
      : scene_(scene), id_(job.id), layout_(scene.inventory), held_(held_by_leases(scene.state)) {
    std::ranges::copy(scene.held, std::back_inserter(held_));
    std::ranges::move(barred_devices(job, scene.inventory, scene.policy, scene.now_s), std::back_inserter(held_));
  }

  bool starts(const place::Request& request) const {
    if (!place::fits(layout_, request, held_).value_or(false)) return false;
    PoolState state = scene_.state;
    Job* const job = state.find(id_);
    job->request = request;
    schedule(state, scene_.inventory, scene_.held, scene_.policy, scene_.now_s);
    return std::as_const(state).find(id_)->state == JobState::running;
  }

 private:
  const Scene& scene_;
  const int64_t id_;
  const place::Layout layout_;
  std::vector<place::Held> held_;
};

std::vector<place::Relaxation> relaxations_of(const Scene& scene, const Job& job) {
  if (is_array(job) || job.cancelled || job.paused || waiting_in(scene.state) > kMostInForecast) return {};
  const Trial trial(scene, job);
  const auto starts = [&](const place::Request& request) { return trial.starts(request); };
  if (starts(job.request)) return {};
  return place::relaxations(job.request, starts);
}

std::map<int64_t, Outlook> outlooks_of(const Scene& scene, const std::vector<int64_t>& ids) {
  std::map<int64_t, Outlook> all;
  for (auto& [id, start] : forecasts(scene.state, ids, scene.inventory, scene.held, scene.policy, scene.now_s)) {
    const Job& job = *scene.state.find(id);
    if (job.why.starts_with(kNoPolicy))
      all[id].start.unknown = "that is up to who mends the policy";
    else
      all[id] = {std::move(start), relaxations_of(scene, job)};
  }
  return all;
}

}  // namespace

Outlook outlook_of(const Scene& scene, const Job& job) { return outlooks_of(scene, {job.id})[job.id]; }

std::map<int64_t, Outlook> outlooks(const Scene& scene, size_t at_most) {
  std::vector<int64_t> ids;
  for (const Job* job : waiting_jobs(scene.state, scene.policy, scene.now_s))
    if (ids.size() < at_most && !is_array(*job)) ids.push_back(job->id);
  return outlooks_of(scene, ids);
}

void add_outlook(const Outlook& outlook, Json& job) {
  if (outlook.start.starts_s) {
    job["starts_s"] = *outlook.start.starts_s;
    job["starts_on"] = outlook.start.devices;
    job["starts_after"] = outlook.start.ends;
  } else {
    job["starts_unknown"] = outlook.start.unknown;
  }
  if (!outlook.would_start.empty()) job["would_start"] = to_json(outlook.would_start);
}

Json to_json(const std::vector<place::Relaxation>& relaxations) {
  Json list = Json::array();
  for (const place::Relaxation& one : relaxations)
    list.push_back({{"change", one.change}, {"request", to_json(one.request)}});
  return list;
}

std::vector<Standing> standings(const PoolState& state, const Policy& policy, double now_s) {
  std::map<std::string, Standing> by_user;
  for (const Usage& usage : state.usage) by_user[usage.user];
  for (const Job& job : state.jobs)
    if (job.state != JobState::ended) by_user[job.user].waiting += job.state == JobState::waiting && !is_array(job);
  for (const Lease& lease : state.leases)
    if (const Job* job = state.find(lease.job)) by_user[job->user].holds += lease.share;
  double sum_s = 0;
  for (auto& [user, one] : by_user) sum_s += one.usage_s = usage_of(state, one.user = user, policy, now_s);
  constexpr double kLeast_s = 60;
  std::vector<Standing> all;
  for (auto& [_, one] : by_user) {
    one.part = sum_s > 0 ? one.usage_s / sum_s : 0;
    if (one.usage_s >= kLeast_s || one.holds > 0 || one.waiting > 0) all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, {}, &Standing::usage_s);
  return all;
}

Json standings_json(const PoolState& state, const Policy& policy, double now_s) {
  Json users = Json::array();
  for (const Standing& one : standings(state, policy, now_s)) users.push_back(fields::write(one));
  return {{"half_life_s", policy.half_life_s}, {"users", std::move(users)}};
}

}  // namespace remuda::pool

#include "pool/forecast.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "place/place.h"
#include "pool/admission.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

constexpr int kMostSteps = 300;

/// A pool that nobody looks after but this.
class Play {
 public:
  Play(PoolState state, const Inventory& inventory, const std::vector<place::Held>& foreign, const Policy& policy,
       double now_s)
      : state_(std::move(state)),
        inventory_(inventory),
        foreign_(foreign),
        policy_(policy),
        begun_s_(now_s),
        now_s_(now_s) {}

  /// Until it is known of all of these.
  std::map<int64_t, Forecast> run(std::vector<int64_t> ids) {
    std::map<int64_t, Forecast> known;
    const auto rest = [&](const auto& why) {
      for (const int64_t id : ids) known[id] = {.unknown = why(id)};
      return known;
    };
    if (static_cast<size_t>(std::ranges::count(state_.jobs, JobState::waiting, &Job::state)) > kMostInForecast)
      return rest([](int64_t) { return fmt::format("more than {} jobs wait", kMostInForecast); });
    for (int step = 0; step < kMostSteps; ++step) {
      schedule(state_, inventory_, foreign_, policy_, now_s_);
      see_who_leaves();
      std::erase_if(ids, [&](int64_t id) {
        auto forecast = settled(id, step == 0);
        if (forecast) known[id] = std::move(*forecast);
        return forecast.has_value();
      });
      if (ids.empty()) return known;
      const double next_s = next();
      if (next_s == kNever_s) return rest([&](int64_t id) { return obstacle(*std::as_const(state_).find(id)); });
      now_s_ = next_s;
      end_what_is_due();
    }
    return rest([](int64_t) { return std::string("too much happens before"); });
  }

 private:
  static double grace_of(const Job& job) { return std::max(1.0, job.grace_s); }

  /// What is known of it by now: it starts, or never does.
  std::optional<Forecast> settled(int64_t id, bool is_first) const {
    const Job* job = state_.find(id);
    const bool is_over = !job || job->state == JobState::ended || job->cancelled;
    if (is_over && is_first) return Forecast{.unknown = "it is not to start"};
    if (is_over) return Forecast{.unknown = "a job that must end well before it is being ended"};
    if (job->state != JobState::running) return std::nullopt;
    std::set<int64_t> before;
    for (const std::string& device : job->devices)
      if (const auto had = had_.find(device); had != had_.end()) before.insert(had->second.begin(), had->second.end());
    return Forecast{.starts_s = now_s_, .devices = job->devices, .ends = before.size(), .unknown = ""};
  }

  /// Jobs that are to make room from now on.
  void see_who_leaves() {
    for (const Job& job : state_.jobs)
      if (job.preempted_by != 0) leaves_s_.try_emplace(job.id, now_s_ + grace_of(job));
  }

  bool is_over_limit(const Job& job) const {
    return job.time_limit_s > 0 && job.started_s + job.time_limit_s <= begun_s_;
  }

  /// Who is told to end, as one that has passed its limit, has its grace time.
  double end_of(const Job& job) const {
    if (const auto leaves = leaves_s_.find(job.id); leaves != leaves_s_.end()) return leaves->second;
    if (job.cancelled || !job.evicted.empty() || is_over_limit(job)) return begun_s_ + grace_of(job);
    return job.time_limit_s > 0 ? job.started_s + job.time_limit_s : kNever_s;
  }

  double next() const {
    double next_s = std::min(begins_next(state_, now_s_), unbarred_next(state_, policy_, now_s_));
    for (const Job& job : state_.jobs)
      if (job.state == JobState::running) next_s = std::min(next_s, end_of(job));
    return next_s;
  }

  void end_what_is_due() {
    std::vector<int64_t> due;
    for (const Job& job : state_.jobs)
      if (job.state == JobState::running && end_of(job) <= now_s_) due.push_back(job.id);
    const auto stays = [&](const Lease& lease) { return std::ranges::find(due, lease.job) == due.end(); };
    for (const Lease& lease : state_.leases) {
      if (stays(lease)) continue;
      had_[lease.device].insert(lease.job);
      const auto device = std::ranges::find(inventory_.devices, lease.device, &Device::id);
      const bool is_shared = std::ranges::any_of(
          state_.leases, [&](const Lease& other) { return other.device == lease.device && stays(other); });
      if (!is_shared && device != inventory_.devices.end() && device->status.memory_used_bytes.has_value())
        device->status.memory_used_bytes = 0;  // it goes with the job
    }
    for (const int64_t id : due) {
      const Job& job = *std::as_const(state_).find(id);
      const bool makes_room = leaves_s_.erase(id) > 0;
      const bool is_stopped = !job.evicted.empty() || is_over_limit(job);
      if (makes_room || (is_stopped && job.preemptible))
        requeue(state_, id, policy_, now_s_);
      else
        end(state_, id, {.exit_status = is_stopped ? kEndedByRemuda : 0}, policy_, now_s_);
    }
  }

  /// Why `job` never starts, where nothing more happens.
  std::string obstacle(const Job& job) const {
    for (const std::vector<int64_t>* ids : {&job.after, &job.after_any})
      for (const int64_t id : *ids) {
        const Job* before = state_.find(id);
        if (!before || before->state == JobState::ended) continue;
        if (is_array(*before)) return fmt::format("array {} must end before it", id);
        if (before->state == JobState::running)
          return fmt::format("job {} must end before, and has no time limit", name_of(*before));
        return before->paused ? fmt::format("job {} must end before, and is paused", name_of(*before))
                              : obstacle(*before);
      }
    if (std::string first = waits_first(state_, job, policy_, now_s_); !first.empty()) return first;
    return holder(job);
  }

  /// The first that holds what it wants, and for nobody knows how long.
  std::string holder(const Job& job) const {
    std::vector<place::Held> held = held_by_leases(state_);
    const size_t leased = held.size();
    std::ranges::copy(foreign_, std::back_inserter(held));
    std::ranges::move(barred_devices(job, inventory_, policy_, now_s_), std::back_inserter(held));
    const auto answer = place::place(place::Layout(inventory_), job.request, held);
    const auto* refusal = answer ? std::get_if<place::Refusal>(&*answer) : nullptr;
    if (!answer) return answer.error().message;
    if (!refusal) return "what comes free is kept for a job before it, of which it is not known when it starts";
    for (size_t i = 0; i < held.size(); ++i) {
      const place::Held& one = held[i];
      const Device* device = inventory_.find(one.device);
      const std::string label = device ? device->label() : one.device;
      if (one.until_s ||
          std::ranges::find(refusal->blockers, label, &place::Blocker::device) == refusal->blockers.end())
        continue;
      if (!one.barred.empty()) return fmt::format("{} {}", label, one.barred);
      return i < leased ? fmt::format("{} is held by {}, which has no time limit", label, one.holder)
                        : fmt::format("{} is in use by {}", label, one.holder);
    }
    return refusal->sentence;
  }

  PoolState state_;
  Inventory inventory_;  ///< what jobs use of its memory goes with them
  const std::vector<place::Held>& foreign_;
  const Policy& policy_;
  const double begun_s_;
  double now_s_;
  std::map<int64_t, double> leaves_s_;            ///< by job that makes room: when it has
  std::map<std::string, std::set<int64_t>> had_;  ///< by device: the jobs that have ended on it since
};

}  // namespace

Forecast forecast(PoolState state, int64_t job, const Inventory& inventory, const std::vector<place::Held>& held,
                  const Policy& policy, double now_s) {
  return forecasts(std::move(state), {job}, inventory, held, policy, now_s)[job];
}

std::map<int64_t, Forecast> forecasts(PoolState state, const std::vector<int64_t>& jobs, const Inventory& inventory,
                                      const std::vector<place::Held>& held, const Policy& policy, double now_s) {
  return Play(std::move(state), inventory, held, policy, now_s).run(jobs);
}

}  // namespace remuda::pool

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

#include "pool/transitions.h"
#include "pool/usage.h"

namespace remuda::pool {
namespace {

/// One look at the queue, from its head to its end.
class Pass {
 public:
  Pass(PoolState& state, const Inventory& inventory, const std::vector<place::Held>& foreign, const Policy& policy,
       double now_s)
      : state_(state),
        layout_(inventory),
        foreign_(foreign),
        policy_(policy),
        now_s_(now_s),
        leased_(held_by_leases(state)) {}

  std::vector<int64_t> run() {
    for (Job& job : state_.jobs)
      if (job.state == JobState::waiting) end_with_others(job);
    for (const Job* next : waiting_jobs(state_, policy_, now_s_)) {
      Job& job = *state_.find(next->id);
      if (!is_array(job) && is_ready(job)) look_at(job);
    }
    return std::move(started_);
  }

 private:
  /// Ends a job that can never start as one before it failed. Ids ascend from a job to those that wait for it, so a
  /// whole chain falls in one pass.
  void end_with_others(Job& job) {
    for (const int64_t id : job.after) {
      const Job* before = state_.find(id);
      if (before && (before->state != JobState::ended || succeeded(*before))) continue;
      job.cancelled = true;
      end(state_, job.id,
          {.exit_status = kEndedByRemuda, .why = fmt::format("job {}, which had to end well before, did not", id)},
          policy_, now_s_);
      return;
    }
  }

  bool is_ready(Job& job) {
    for (const int64_t id : job.after) {
      const Job* before = state_.find(id);
      if (before->state == JobState::ended) continue;
      job.why = is_array(*before)
                    ? fmt::format("array {}, which must end well before, has not ended", id)
                    : fmt::format("job {}, which must end well before, is {}", id, to_string(before->state));
      return false;
    }
    return true;
  }

  void look_at(Job& job) {
    const Result<place::Answer>& answer = ask_now(job.request);
    if (!answer) {
      job.why = answer.error().message;
    } else if (const auto* placement = std::get_if<place::Placement>(&*answer)) {
      start(job, *placement);
    } else {
      const place::Refusal refusal = std::get<place::Refusal>(*answer);
      job.why = refusal.sentence;
      if (refusal.never || make_room_for(job)) return;
      if (now_s_ - job.submitted_s >= policy_.patience_s) keep_for(job);
    }
  }

  /// Many jobs ask for the same, and the answer holds until somebody gets something.
  const Result<place::Answer>& ask_now(const place::Request& request) {
    const std::string asked = to_line(to_json(request));
    if (!answers_.contains(asked)) answers_.emplace(asked, place::place(layout_, request, held_after(0)));
    return answers_.at(asked);
  }

  void start(Job& job, const place::Placement& placement) {
    const double until_s = job.time_limit_s > 0 ? now_s_ + job.time_limit_s : 0;
    for (const std::string& device : placement.devices)
      state_.leases.push_back({job.id, device, job.request.share, now_s_, until_s});
    job.state = JobState::running;
    job.started_s = now_s_;
    job.why.clear();
    started_.push_back(job.id);
    leased_ = held_by_leases(state_);
    answers_.clear();
  }

  /// Has preemptible jobs of lower priority make room, as few as suffice: those that do so for this job already, then
  /// the lowest priority, then those with the least work to lose. False where they cannot.
  bool make_room_for(Job& job) {
    const std::vector<Job*> others = preemptible_for(job);
    std::vector<int64_t> ids;
    std::optional<place::Placement> placement;
    for (const Job* other : others) {
      ids.push_back(other->id);
      placement = placement_among(with_others(held_by_leases(state_, ids)), job.request);
      if (placement) break;
    }
    if (!placement) return false;
    for (Job* other : others) {
      if (holds_any(*other, placement->devices)) other->preempted_by = job.id;
      if (other->preempted_by == job.id) job.why += fmt::format("; job {} makes room for it", other->id);
    }
    keep(*placement, job);
    return true;
  }

  bool holds_any(const Job& job, const std::vector<std::string>& devices) const {
    return std::ranges::any_of(state_.leases, [&](const Lease& lease) {
      return lease.job == job.id && std::ranges::find(devices, lease.device) != devices.end();
    });
  }

  std::vector<Job*> preemptible_for(const Job& job) {
    std::vector<Job*> others;
    for (Job& other : state_.jobs)
      if (other.state == JobState::running && other.preemptible && other.priority < job.priority &&
          (other.preempted_by == 0 || other.preempted_by == job.id))
        others.push_back(&other);
    std::ranges::sort(others, {}, [](const Job* other) {
      return std::tuple(other->preempted_by == 0, other->priority, -other->started_s, -other->id);
    });
    return others;
  }

  /// Keeps for a job that has waited long enough what it can have first: the devices it would get when, of all that are
  /// held, those had come free that are said to end first, then those held longest, then those held without a lease;
  /// and of these as few as possible. As devices come free they are among them, so in the end the job has them all.
  void keep_for(Job& job) {
    sort_by_end(leased_);
    std::vector<size_t> counts;
    for (size_t count = 0; count <= leased_.size() + foreign_.size(); ++count) counts.push_back(count);
    const auto suffices = [&](size_t count) { return placement_after(count, job.request).has_value(); };
    const auto fewest = std::ranges::partition_point(counts, [&](size_t count) { return !suffices(count); });
    if (fewest == counts.end()) return;
    keep(*placement_after(*fewest, job.request), job);
    job.why += "; what comes free is kept for it";
  }

  void keep(const place::Placement& placement, const Job& job) {
    for (const std::string& device : placement.devices)
      kept_.push_back(
          {device, job.request.share, fmt::format("{} (job {}, for which it is kept)", job.user, job.id), {}, {}});
    answers_.clear();
  }

  static void sort_by_end(std::vector<place::Held>& held) {
    const auto end = [](const place::Held& one) {
      return std::tuple(!one.until_s, one.until_s.value_or(0), one.since_s.value_or(0));
    };
    std::ranges::stable_sort(held, {}, end);
  }

  std::optional<place::Placement> placement_after(size_t gone, const place::Request& request) const {
    return placement_among(held_after(gone), request);
  }

  std::optional<place::Placement> placement_among(const std::vector<place::Held>& held,
                                                  const place::Request& request) const {
    auto answer = place::place(layout_, request, held);
    auto* placement = answer ? std::get_if<place::Placement>(&*answer) : nullptr;
    return placement ? std::optional(std::move(*placement)) : std::nullopt;
  }

  /// All that is held once the first `gone` of the leases, then of the others, are no more.
  std::vector<place::Held> held_after(size_t gone) const {
    std::vector<place::Held> held = leased_;
    held.insert(held.end(), foreign_.begin(), foreign_.end());
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(std::min(gone, held.size())));
    held.insert(held.end(), kept_.begin(), kept_.end());
    return held;
  }

  /// And all that is held otherwise than by these leases.
  std::vector<place::Held> with_others(std::vector<place::Held> leased) const {
    leased.insert(leased.end(), foreign_.begin(), foreign_.end());
    leased.insert(leased.end(), kept_.begin(), kept_.end());
    return leased;
  }

  PoolState& state_;
  place::Layout layout_;
  const std::vector<place::Held>& foreign_;
  const Policy& policy_;
  const double now_s_;
  std::vector<place::Held> leased_;
  std::vector<place::Held> kept_;
  std::map<std::string, Result<place::Answer>> answers_;
  std::vector<int64_t> started_;
};

}  // namespace

std::vector<const Job*> waiting_jobs(const PoolState& state, const Policy& policy, double now_s) {
  std::map<std::string, double> usage;
  std::vector<const Job*> waiting;
  for (const Job& job : state.jobs) {
    if (job.state != JobState::waiting) continue;
    waiting.push_back(&job);
    if (!usage.contains(job.user)) usage[job.user] = usage_of(state, job.user, policy, now_s);
  }
  std::ranges::sort(waiting, {}, [&](const Job* job) { return std::tuple(-job->priority, usage[job->user], job->id); });
  return waiting;
}

std::vector<int64_t> schedule(PoolState& state, const Inventory& inventory, const std::vector<place::Held>& held,
                              const Policy& policy, double now_s) {
  forgive_clock(state, now_s);
  const bool waits = std::ranges::any_of(state.jobs, [](const Job& job) { return job.state == JobState::waiting; });
  return waits ? Pass(state, inventory, held, policy, now_s).run() : std::vector<int64_t>();
}

}  // namespace remuda::pool

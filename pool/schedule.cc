#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "place/host.h"
#include "place/rates.h"
#include "pool/admission.h"
#include "pool/refused.h"
#include "pool/transitions.h"
#include "pool/usage.h"

namespace remuda::pool {
namespace {

/// Mostly it is what it was at the last pass.
void set_why(PoolState& state, const Job& job, std::string why) {
  if (job.why != why) state.jobs.edit(job).why = std::move(why);
}

/// For how many jobs at the head of the queue the reason for waiting is written. Each change of the free devices
/// changes these sentences, and the queue may hold thousands.
constexpr int kExplained = 32;
/// So many unlike requests of a user are tried in a pass in vain; then what he has behind them waits for these. Else a
/// pass takes as long as he likes, and all others wait for it.
constexpr int kTriedOfUser = 64;

/// One pass over the queue, from its head to its end.
///
/// place() is called once for each kind of request that is refused, not for each job: within a pass no device comes
/// free, so a request refused once stays refused (pool/refused.h). The sentences are written last, when the free
/// devices are known.
class Pass {
 public:
  Pass(PoolState& state, const Inventory& inventory, const std::vector<place::Held>& foreign, const Policy& policy,
       double now_s)
      : state_(state),
        layout_(inventory),
        inventory_(inventory),
        foreign_(foreign),
        policy_(policy),
        now_s_(now_s),
        leased_(held_by_leases(state)),
        has_preemptible_(std::ranges::any_of(
            state.jobs, [](const Job& job) { return job.state == JobState::running && job.preemptible; })) {
    std::ranges::move(held_by_drains(state), std::back_inserter(foreign_));
  }

  std::vector<int64_t> run() {
    for (const Job& job : state_.jobs)
      if (job.state == JobState::waiting) end_with_others(job);
    constexpr size_t kFew = 4;  // for these, place() finds the few rings it needs sooner
    const std::vector<const Job*> waiting = waiting_jobs(state_, policy_, now_s_);
    for (const Job* next : waiting) {
      const Job& job = *next;
      if (waiting.size() > kFew && job.request.count > 1) layout_.prepare(job.request.link);
      if (!is_array(job) && is_ready(job) && has_turn(job)) look_at(job);
    }
    explain();
    return std::move(started_);
  }

 private:
  struct Waiting {
    const Job* job;
    size_t kept;       ///< size of kept_ when its turn came
    std::string also;  ///< appended to the reason
  };

  /// What has been refused where the same devices were barred.
  struct Seen {
    RefusedRequests refused, has_no_room, cannot_keep;
    std::map<double, RefusedRequests> cannot_pass;  ///< by when the job would end
  };

  void see_for(const Job& job) {
    barred_ = barred_devices(job, inventory_, policy_, now_s_);
    std::string key;
    for (const place::Held& held : barred_) key += held.device + '\n' + held.barred + '\n';
    seen_ = &seen_of_[key];
  }

  /// Ends a job that can never start because a job that it waits for failed. A job's id is lower than those of the jobs
  /// that wait for it, so a whole chain ends in one pass.
  void end_with_others(const Job& job) {
    if (job.cancelled) return;
    for (const int64_t id : job.after) {
      const Job* before = std::as_const(state_).find(id);
      if (before && (before->state != JobState::ended || succeeded(*before))) continue;
      end_waiting(
          state_, job.id,
          {.exit_status = kEndedByRemuda, .why = fmt::format("job {}, which had to end well before, did not", id)},
          policy_, now_s_);
      return;
    }
  }

  bool has_turn(const Job& job) {
    const auto tried = tried_of_.find(job.user);
    if (tried == tried_of_.end() || tried->second < kTriedOfUser) return true;
    set_why(state_, job,
            fmt::format("{} unlike requests of {} before it cannot be met yet, and no more of one user are tried",
                        kTriedOfUser, job.user));
    return false;
  }

  bool is_ready(const Job& job) {
    std::string why = waits_first(state_, job, policy_, now_s_);
    if (why.empty()) return true;
    set_why(state_, job, std::move(why));
    return false;
  }

  void look_at(const Job& job) {
    see_for(job);
    if (!seen_->refused.covers(job.request)) {
      const auto placement = fits_after(0, job.request) ? placement_after(0, job.request) : std::nullopt;
      if (placement) return start(job, *placement);
      seen_->refused.add(job.request);
      ++tried_of_[job.user];
    }
    if (pass_with(job)) return;
    Waiting& waiting = waiting_.emplace_back(Waiting{&job, kept_.size(), why_not_passing(job)});
    if (make_room_for(job, waiting)) return;
    if (now_s_ - std::max(job.submitted_s, job.begin_s) >= policy_.patience_s) keep_for(job, waiting);
  }

  /// Devices that are kept for a job.
  struct Kept {
    place::Held held;
    const Job* job;
    double starts_s;  ///< the job can start then, by the time limits of what runs; 0: nobody knows
  };

  /// Starts a job on devices that are kept for others which cannot start before it has ended.
  bool pass_with(const Job& job) {
    if (!policy_.backfill || job.time_limit_s <= 0) return false;
    const double ends_s = now_s_ + job.time_limit_s + job.grace_s;
    const auto lets_pass = [&](const Kept& kept) { return kept.starts_s >= ends_s; };
    const auto first = std::ranges::find_if(kept_, lets_pass);
    RefusedRequests& refused = seen_->cannot_pass[ends_s];
    if (first == kept_.end() || refused.covers(job.request)) return false;
    const std::vector<place::Held> held = held_unless(lets_pass);
    const auto placement =
        place::fits(layout_, job.request, held).value_or(false) ? placement_among(held, job.request) : std::nullopt;
    if (!placement) {
      refused.add(job.request);
      return false;
    }
    const auto is_taken = [&](const Kept& kept) {
      return lets_pass(kept) && std::ranges::find(placement->devices, kept.held.device) != placement->devices.end();
    };
    const auto taken = std::ranges::find_if(kept_, is_taken);
    state_.jobs.edit(job).passed = (taken == kept_.end() ? first : taken)->job->id;
    start(job, *placement);
    return true;
  }

  /// Why a job waits that could start if its time limit were short enough; words that do not change with time.
  std::string why_not_passing(const Job& job) const {
    const auto is_known = [](const Kept& kept) { return kept.starts_s > 0; };
    const auto first = std::ranges::find_if(kept_, is_known);
    if (!policy_.backfill || first == kept_.end() || waiting_.size() >= kExplained) return "";
    if (!place::fits(layout_, job.request, held_unless(is_known)).value_or(false)) return "";
    const std::string before = name_of(*first->job);
    return job.time_limit_s > 0
               ? fmt::format("; by its time limit it would not end before job {} can start", before)
               : fmt::format("; with a time limit it could pass job {}, if it ends before that can start", before);
  }

  /// All that is held now, without what is kept by those that `may_be_passed`.
  template <typename MayBePassed>
  std::vector<place::Held> held_unless(const MayBePassed& may_be_passed) const {
    std::vector<place::Held> held = with_others(leased_, 0);
    for (const Kept& kept : kept_)
      if (!may_be_passed(kept)) held.push_back(kept.held);
    return held;
  }

  /// "; job 7, which ends before it can start, passes it".
  std::string passers_text(const Job& job) const {
    std::string text;
    for (const Job& other : state_.jobs)
      if (other.passed == job.id && other.state == JobState::running)
        text += fmt::format("; job {}, which ends before it can start, passes it", name_of(other));
    return text;
  }

  void explain() {
    const std::string behind = fmt::format("{} jobs or more are before it in the queue", kExplained);
    std::vector<Reason> reasons;
    int explained = 0;
    for (const Waiting& waiting : waiting_)
      set_why(state_, *waiting.job,
              (explained++ < kExplained ? reason_of(waiting, reasons) + passers_text(*waiting.job) : behind) +
                  waiting.also);
  }

  /// Why a job waits.
  struct Reason {
    const Seen* seen;
    const place::Request* request;
    size_t kept;
    std::string sentence;
  };

  std::string reason_of(const Waiting& waiting, std::vector<Reason>& known) {
    see_for(*waiting.job);
    for (const Reason& reason : known)
      if (reason.seen == seen_ && reason.kept == waiting.kept && *reason.request == waiting.job->request)
        return reason.sentence;
    std::vector<place::Held> held = with_others(leased_, waiting.kept);
    const auto answer = place::place(layout_, waiting.job->request, held);
    const auto* refusal = answer ? std::get_if<place::Refusal>(&*answer) : nullptr;
    known.push_back({seen_, &waiting.job->request, waiting.kept,
                     refusal  ? refusal->sentence
                     : answer ? "it can start at the next look"
                              : answer.error().message});
    return known.back().sentence;
  }

  void start(const Job& waiting, const place::Placement& placement) {
    Job& job = state_.jobs.edit(waiting);
    const double until_s = job.time_limit_s > 0 ? now_s_ + job.time_limit_s : 0;
    for (const std::string& device : placement.devices)
      state_.leases.push_back({job.id, device, job.request.share, now_s_, until_s});
    job.state = JobState::running;
    job.started_s = now_s_;
    job.clock = {};
    job.devices = placement.devices;
    job.cores = placement.cores;
    if (!speeds_) speeds_ = place::relative_speeds(inventory_);
    job.speeds = speeds_->of_each(placement.devices);
    job.why.clear();
    started_.push_back(job.id);
    leased_ = held_by_leases(state_);
  }

  /// Marks preemptible jobs of lower priority to make room, as few as suffice: first those marked for this job already,
  /// then those of the lowest priority, then those with the least work to lose. What they hold of the host counts as
  /// their devices do. False where that does not suffice.
  bool make_room_for(const Job& job, Waiting& waiting) {
    if (!has_preemptible_ || seen_->has_no_room.covers(job.request)) return false;
    const std::vector<const Job*> others = preemptible_for(job);
    const std::vector<int64_t> leaving = those_to_leave(others, job);
    const auto placement = leaving.empty() ? std::nullopt : placement_among(held_without(leaving), job.request);
    if (!placement) {
      seen_->has_no_room.add(job.request);
      return false;
    }
    for (const int64_t id : leaving) state_.find(id)->preempted_by = job.id;
    for (const Job* other : others)
      if (other->preempted_by == job.id) waiting.also += fmt::format("; job {} makes room for it", name_of(*other));
    keep(*placement, job, 0);
    return true;
  }

  std::vector<place::Held> held_without(std::span<const int64_t> jobs) const {
    return with_others(held_by_leases(state_, jobs), kept_.size());
  }

  /// The first of these jobs, as few as suffice, without those among them that are not in the way of the request. None
  /// where all of them do not suffice.
  std::vector<int64_t> those_to_leave(const std::vector<const Job*>& others, const Job& job) const {
    const auto suffice = [&](std::span<const int64_t> jobs) {
      return place::fits(layout_, job.request, held_without(jobs)).value_or(false);
    };
    std::vector<int64_t> ids(others.size());
    std::ranges::transform(others, ids.begin(), &Job::id);
    if (ids.empty() || !suffice(ids)) return {};
    size_t fewest = 1;
    while (fewest < ids.size() && !suffice(std::span(ids).first(fewest))) ++fewest;
    ids.resize(fewest);
    for (size_t i = fewest; i > 0 && ids.size() > 1; --i) {  // from the one that loses most
      if (others[i - 1]->preempted_by == job.id) continue;
      std::vector<int64_t> fewer = ids;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i - 1));
      if (suffice(fewer)) ids = std::move(fewer);
    }
    return ids;
  }

  std::vector<const Job*> preemptible_for(const Job& job) const {
    std::vector<const Job*> others;
    for (const Job& other : state_.jobs)
      if (other.state == JobState::running && other.preemptible && other.priority < job.priority &&
          (other.preempted_by == 0 || other.preempted_by == job.id))
        others.push_back(&other);
    std::ranges::sort(others, {}, [](const Job* other) {
      return std::tuple(other->preempted_by == 0, other->priority, -other->started_s, -other->id);
    });
    return others;
  }

  /// Reserves devices for a job that has waited long enough: those it would get if held devices came free in this
  /// order: leases with the earliest time limit, then those held longest, then devices held without a lease; and as few
  /// of these as possible. Devices that come free are kept for the job, so in the end it has them all.
  void keep_for(const Job& job, Waiting& waiting) {
    if (seen_->cannot_keep.covers(job.request)) return;
    sort_by_end(leased_);
    std::vector<size_t> counts;
    for (size_t count = 0; count <= leased_.size() + foreign_.size(); ++count) counts.push_back(count);
    const auto suffices = [&](size_t count) { return fits_after(count, job.request); };
    const auto fewest = std::ranges::partition_point(counts, [&](size_t count) { return !suffices(count); });
    if (fewest == counts.end()) return seen_->cannot_keep.add(job.request);
    const double starts_s = *fewest > 0 && *fewest <= leased_.size() ? leased_[*fewest - 1].until_s.value_or(0) : 0;
    keep(*placement_after(*fewest, job.request), job, starts_s);
    waiting.also += "; what comes free is kept for it";
  }

  void keep(const place::Placement& placement, const Job& job, double starts_s) {
    const std::string holder = fmt::format("{} (job {}, for which it is kept)", job.user, name_of(job));
    for (const std::string& device : placement.devices)
      kept_.push_back({{device, job.request.share, holder, {}, {}}, &job, starts_s});
    if (wants_host(job.request)) kept_.push_back({host_part(placement.cores, job.request, holder), &job, starts_s});
  }

  static void sort_by_end(std::vector<place::Held>& held) {
    const auto end = [](const place::Held& one) {
      return std::tuple(!one.until_s, one.until_s.value_or(0), one.since_s.value_or(0));
    };
    std::ranges::stable_sort(held, {}, end);
  }

  bool fits_after(size_t gone, const place::Request& request) const {
    return place::fits(layout_, request, held_after(gone)).value_or(false);
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

  /// All that is held once the first `gone` of the leases, then of the other holders, are gone.
  std::vector<place::Held> held_after(size_t gone) const {
    std::vector<place::Held> held = leased_;
    held.insert(held.end(), foreign_.begin(), foreign_.end());
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(std::min(gone, held.size())));
    for (const Kept& kept : kept_) held.push_back(kept.held);
    std::ranges::copy(barred_, std::back_inserter(held));
    return held;
  }

  /// These leases, the devices held without a lease, and the first `kept` of those kept for jobs.
  std::vector<place::Held> with_others(std::vector<place::Held> leased, size_t kept) const {
    leased.insert(leased.end(), foreign_.begin(), foreign_.end());
    std::ranges::copy(barred_, std::back_inserter(leased));
    for (const Kept& one : std::span(kept_).first(kept)) leased.push_back(one.held);
    return leased;
  }

  PoolState& state_;
  place::Layout layout_;
  const Inventory& inventory_;
  std::vector<place::Held> foreign_;
  const Policy& policy_;
  const double now_s_;
  std::vector<place::Held> leased_;
  bool has_preemptible_;
  std::vector<Kept> kept_;
  std::vector<place::Held> barred_;      ///< what is reserved for others than the job that is looked at
  std::map<std::string, Seen> seen_of_;  ///< by what is barred
  std::map<std::string, int> tried_of_;  ///< by user: unlike requests that were refused
  Seen* seen_ = nullptr;                 ///< the one for barred_
  std::optional<place::RelativeSpeeds> speeds_;
  std::vector<Waiting> waiting_;  ///< the refused jobs, in queue order
  std::vector<int64_t> started_;
};

}  // namespace

std::vector<int64_t> schedule(PoolState& state, const Inventory& inventory, const std::vector<place::Held>& held,
                              const Policy& policy, double now_s) {
  clamp_future_times(state, now_s);
  const bool waits = std::ranges::any_of(state.jobs, [](const Job& job) { return job.state == JobState::waiting; });
  return waits ? Pass(state, inventory, held, policy, now_s).run() : std::vector<int64_t>();
}

void hold_back(PoolState& state, const std::string& error, double now_s) {
  for (const Job& job : state.jobs) {
    if (job.state != JobState::waiting || is_array(job)) continue;
    std::string first = waits_first(state, job, {}, now_s);
    set_why(state, job, first.empty() ? kNoPolicy + error : std::move(first));
  }
}

}  // namespace remuda::pool

#include "balance/participants.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "base/check.h"

namespace remuda::balance {
namespace {

constexpr size_t kTrialSteps = 8;        // with the same shares, that show what a step takes
constexpr int kLongestTrial = 32;        // steps, where shares change all the time
constexpr int kClearSteps = 3;           // that are enough where another set is shorter
constexpr double kClearlyBetter = 0.25;  // by this part of the shortest of them
constexpr int kSettlingSteps = 2;        // after a change, as for the Balancer
constexpr double kSureErrors = 1.5;      // errors of what steps take now, by which another set must be better
constexpr double kTriedBetter = 0.02;    // part of a step by which one that was tried must be shorter
constexpr double kUntriedBetter = 0.02;  // and one that is only predicted
constexpr double kOtherSpeed =
    1.25;  // factor by which steps have become longer or shorter: what was tried is out of date
constexpr double kAgainSteps = 200;  // until a set is tried again; doubled each time
constexpr double kMostAgain = 3200;
constexpr double kTrialCost = 0.01;  // part of all time that such trials may take
constexpr size_t kAllSubsets = 6;    // devices that compute; of more, only the fastest so many are a set

/// The relative error of their median: 1.4826 times the median deviation is a standard deviation, and a median's error
/// is 1.25 of that over the root of their number.
double error_of_median(const std::deque<double>& values) {
  const double middle = median_of(values);
  std::deque<double> off;
  for (const double value : values) off.push_back(std::abs(value / middle - 1));
  return 1.25 * 1.4826 * median_of(off) / std::sqrt(double(values.size()));
}

bool may_work(const SplitDevice& device) {
  return takes_samples(device.role) && device.samples.high > 0 && device.compute.seconds(1) > 0;
}

}  // namespace

Participants::Participants(ParticipantsOptions options)
    : options_(std::move(options)),
      now_(options_.devices.size(), true),
      updates_(options_.devices.size()),
      retry_after_(kAgainSteps) {
  REMUDA_CHECK(options_.state.size() == now_.size() && options_.names.size() == now_.size(), "one of each per device");
  for (const Set& set : sets()) predicted_.emplace(set, predict(set));
}

/// Of those that take samples; the others are always there.
std::vector<Participants::Set> Participants::sets() const {
  std::vector<size_t> computing;
  for (size_t i = 0; i < now_.size(); ++i)
    if (may_work(options_.devices[i])) computing.push_back(i);
  const double part = double(options_.task.batch) / double(std::max<size_t>(1, computing.size()));
  std::ranges::stable_sort(computing, {}, [&](size_t i) { return options_.devices[i].compute.seconds(part); });
  Set others(now_.size(), true);
  for (const size_t i : computing) others[i] = false;
  std::vector<Set> all;
  const size_t count = computing.size(), last = count <= kAllSubsets ? (size_t{1} << count) - 1 : count;
  for (size_t number = 1; number <= last; ++number) {
    Set set = others;
    for (size_t i = 0; i < count; ++i)
      if (count <= kAllSubsets ? number >> i & 1 : i < number) set[computing[i]] = true;
    all.push_back(std::move(set));
  }
  return all;
}

std::optional<Split> Participants::predict(const Set& set) const {
  std::vector<SplitDevice> devices = options_.devices;
  for (size_t i = 0; i < set.size(); ++i)
    if (!set[i]) devices = without(devices, i);
  return best_split(devices, options_.task);
}

double Participants::counts(const Set& set) const {
  if (const auto tried = tried_.find(set); tried != tried_.end()) return tried->second;
  const auto found = predicted_.find(set);
  return found != predicted_.end() && found->second ? found->second->step_s : INFINITY;
}

/// The set that is so much better than the one in force that a few steps show it, whatever their shares; or null.
const Participants::Set* Participants::clearly_better() const {
  if (since_change_ < kSettlingSteps + kClearSteps || since_change_ >= kLongestTrial) return nullptr;
  const Set* best = nullptr;
  for (const auto& [set, split] : predicted_)
    if (set != now_ && counts(set) < (best ? counts(*best) : (1 - kClearlyBetter) * shortest_s_)) best = &set;
  return best;
}

void Participants::take(const StepSeen& step) {
  ++since_change_;
  ++since_trial_;
  if (since_change_ > kSettlingSteps) shortest_s_ = std::min(shortest_s_, step.seconds);
  if (step.shares != shares_) {
    shares_ = step.shares;
    steps_s_.clear();
    settling_ = kSettlingSteps;
  }
  if (settling_ > 0) {
    --settling_;
    return;
  }
  steps_s_.push_back(step.seconds);
  if (steps_s_.size() > kTrialSteps) steps_s_.pop_front();
  updates_.add(step.update_s, options_.state);
}

std::optional<ParticipantsChange> Participants::observe(const StepSeen& step) {
  REMUDA_CHECK(step.shares.size() == now_.size() && step.update_s.size() == now_.size(), "one of each per device");
  if (!(step.seconds > 0)) return std::nullopt;
  take(step);
  if (const Set* better = clearly_better()) {
    tried_[now_] = shortest_s_;
    return change_to(*better, shortest_s_);
  }
  if (steps_s_.empty() || (steps_s_.size() < kTrialSteps && since_change_ < kLongestTrial)) return std::nullopt;
  const double now_s = median_of(steps_s_);
  if (began_s_ == 0) began_s_ = now_s;
  const bool has_shifted = std::abs(std::log(now_s / began_s_)) > std::log(kOtherSpeed);
  if (has_shifted && since_change_ > kLongestTrial && since_trial_ > shift_after_) {
    tried_.clear();
    began_s_ = now_s;
    shift_after_ = std::min(2 * shift_after_, kMostAgain);
  }
  tried_[now_] = now_s;
  retry_where_due(now_s);
  const double unsure = kSureErrors * error_of_median(steps_s_);
  const Set* best = &now_;
  for (const auto& [set, split] : predicted_) {
    const double least = std::max(tried_.contains(set) ? kTriedBetter : kUntriedBetter, unsure);
    if (counts(set) < (1 - least) * now_s && counts(set) < counts(*best)) best = &set;
  }
  if (best != &now_) return change_to(*best, now_s);
  return move_state(now_s);
}

/// A set that has disappointed may do better now: it counts as it is predicted again.
void Participants::retry_where_due(double now_s) {
  for (const auto& [set, split] : predicted_) {
    const auto tried = tried_.find(set);
    if (set == now_ || tried == tried_.end() || !split || split->step_s > (1 - kUntriedBetter) * now_s) continue;
    const double slower = (kTrialSteps + kSettlingSteps) * std::max(0.0, tried->second / now_s - 1);
    const double lost = slower + 2 * move_s_ / now_s;  // there and back
    if (since_trial_ < std::max(retry_after_, lost / kTrialCost)) continue;
    tried_.erase(tried);
    retry_after_ = std::min(2 * retry_after_, kMostAgain);
    return;
  }
}

ParticipantsChange Participants::change_to(const Set& set, double now_s) {
  ParticipantsChange change{set, options_.state, 1 - counts(set) / now_s, {}};
  if (options_.task.state_given.empty()) change.state = predicted_.at(set)->state;
  std::vector<std::string> out, in;
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i] != now_[i]) (now_[i] ? out : in).push_back(options_.names[i]);
  const auto speed = [&](double seconds) { return fmt::format("{:.0f} samples/s", options_.task.batch / seconds); };
  const std::string now = speed(now_s), then = speed(counts(set)) + (tried_.contains(set) ? "" : " predicted");
  if (!out.empty())
    change.reason = fmt::format("{} {} left out: with {} {}, without {}", fmt::join(out, ", "),
                                out.size() > 1 ? "are" : "is", out.size() > 1 ? "them" : "it", now, then);
  if (!in.empty())
    change.reason += fmt::format("{}{} {} part: with {} {}, without {}", out.empty() ? "" : "; ", fmt::join(in, ", "),
                                 in.size() > 1 ? "take" : "takes", in.size() > 1 ? "them" : "it", then, now);
  now_ = set;
  options_.state = change.state;
  steps_s_.clear();
  updates_.clear();
  since_change_ = since_trial_ = 0;
  shortest_s_ = INFINITY;
  began_s_ = 0;
  settling_ = kSettlingSteps;
  return change;
}

/// Among the same devices.
std::optional<ParticipantsChange> Participants::move_state(double now_s) {
  if (!options_.task.state_given.empty() || !pace_.is_due(since_change_)) return std::nullopt;
  std::vector<SplitDevice> devices = options_.devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].update_s = updates_.of(i).value_or(devices[i].update_s);
    if (!now_[i]) devices = without(devices, i);
  }
  const auto best = best_split(devices, options_.task);
  const auto as_it_is = predicted(devices, options_.task, shares_, options_.state);
  if (!best || !as_it_is) return std::nullopt;
  const double gain = (as_it_is->update_s - best->update_s) / now_s;
  if (gain < kWorthMoving || !pace_.may_move(as_it_is->update_s, best->update_s)) return std::nullopt;
  options_.state = best->state;
  tried_.erase(now_);
  began_s_ = 0;
  steps_s_.clear();
  updates_.clear();
  since_change_ = 0;
  settling_ = kSettlingSteps;
  return ParticipantsChange{
      now_, options_.state, gain,
      fmt::format("the state moves to where updates are faster: the step is predicted {:.0f} % shorter", 100 * gain)};
}

void Participants::keep_state(std::vector<double> state) {
  options_.state = options_.task.state_given = std::move(state);
  for (auto& [set, split] : predicted_) split = predict(set);
}

void Participants::limit(size_t device, int most, const std::vector<bool>& takes_part) {
  Bounds& samples = options_.devices[device].samples;
  samples.high = std::min(samples.high, most);
  samples.low = std::min(samples.low, samples.high);
  for (auto& [set, split] : predicted_) split = predict(set);
  tried_.clear();
  steps_s_.clear();
  now_ = takes_part;
  since_change_ = since_trial_ = 0;
  shortest_s_ = INFINITY;
  began_s_ = 0;
}

std::vector<LeftOut> Participants::left_out() const {
  std::vector<LeftOut> all;
  for (size_t i = 0; i < now_.size(); ++i) {
    if (now_[i]) continue;
    LeftOut one{.device = i, .with_s = INFINITY, .without_s = counts(now_)};
    for (const auto& [set, split] : predicted_) {
      if (!set[i]) continue;
      const bool was_tried = tried_.contains(set);
      if (std::pair(!was_tried, counts(set)) >= std::pair(!one.was_tried, one.with_s)) continue;
      one.was_tried = was_tried;
      one.with_s = counts(set);
    }
    all.push_back(one);
  }
  return all;
}

}  // namespace remuda::balance

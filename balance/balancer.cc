#include "balance/balancer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

#include "balance/shares.h"
#include "base/check.h"

namespace remuda::balance {
namespace {

constexpr int kSureTimes = 3;        // times that make a median, which no single spike moves
constexpr double kPlainGain = 0.3;   // a gain that is acted on after a single time of each device, certain or not
constexpr int kMostGrowth = 3;       // times its present share, unless that is below the even share
constexpr double kSureness = 1.5;    // standard errors by which a gain must exceed the least one
constexpr int kHindsightSteps = 8;   // fewest steps that are considered, and steps between two searches in them
constexpr int kRestlessWindow = 40;  // steps that are considered where speeds change all the time
constexpr double kHindsightSureness = 1.0;  // as kSureness, for a gain found in the steps themselves;
constexpr double kHindsightLeast = 0.5;     // and the part of the least gain that is enough then
constexpr double kSmallMove = 0.25;    // of a share; steps before a larger move predict little about those after it
constexpr double kTellingShift = 1.1;  // a change of speed that explains a move
constexpr int kRetrySteps = 200;       // idle steps until a device is tried again; each retry doubles them
constexpr int kMostRetrySteps = 3200;
constexpr double kRetryCost = 0.01;  // part of all time that such trials may take at most
constexpr double kHopeless = 2;      // times the step of the others: a device that takes this for one sample gets none
constexpr double kNever = 1e9;       // seconds per sample of a device that was given the weight 0

/// False for a time that cannot be right, as when the clock jumped.
bool usable(double seconds) { return seconds > 1e-9 && seconds < 1e6; }

/// As many as hold all samples.
int units_of(int samples, int unit) { return samples / unit + (samples % unit > 0 ? 1 : 0); }

std::string no_room(const BalanceOptions& options) {
  int64_t room = 0;
  for (const Bounds& bounds : options.bounds) room += bounds.high;
  return fmt::format("the global batch of {} samples does not fit: the devices together take {} at most",
                     options.global_batch * options.unit, room * options.unit);
}

}  // namespace

Balancer::Balancer(BalanceOptions options) : options_(std::move(options)), unrest_(options_.bounds.size()) {
  const size_t devices = options_.bounds.size();
  REMUDA_CHECK(devices > 0 && options_.global_batch > 0, "there are devices, and samples for them");
  REMUDA_CHECK(options_.policy != BalancePolicy::fixed || options_.weights.size() == devices, "one weight per device");
  REMUDA_CHECK(options_.unit > 0 && options_.global_batch % options_.unit == 0, "the batch is a whole number of units");
  options_.global_batch /= options_.unit;
  for (Bounds& bounds : options_.bounds) {
    bounds.low = units_of(bounds.low, options_.unit);
    bounds.high /= options_.unit;
  }
  models_.resize(devices);
  shifts_.assign(devices, 1);
  allowed_.assign(devices, true);
  calibrated_.resize(devices);
  idle_steps_.assign(devices, 0);
  retry_after_.assign(devices, kRetrySteps);
  back_after_.assign(devices, 0);
}

void Balancer::calibrate(int device, int batch, double seconds) {
  if (batch > 0 && usable(seconds)) models_.at(device).add(units_of(batch, options_.unit), seconds);
}

std::vector<BatchTime> Balancer::known_times(int device) const {
  std::vector<BatchTime> times = models_.at(device).times();
  for (BatchTime& time : times) time.batch *= options_.unit;
  return times;
}

std::vector<Bounds> Balancer::bounds_in_samples() const {
  std::vector<Bounds> bounds = options_.bounds;
  for (Bounds& bound : bounds) bound = {bound.low * options_.unit, bound.high * options_.unit};
  return bounds;
}

Result<BalanceDecision> Balancer::start() {
  take(nominal());
  if (shares_.empty()) return failed(no_room(options_));
  for (size_t i = 0; i < models_.size(); ++i)
    if (models_[i].batch_sizes() > 1) calibrated_[i] = models_[i].line();
  std::vector<int> next = split();
  std::string reason = "no speed is known yet: the shares start even";
  if (options_.policy == BalancePolicy::even) reason = "the policy is even: every device takes the same share";
  if (options_.policy == BalancePolicy::fixed) reason = "the policy is fixed: the shares follow the given weights";
  if (options_.policy == BalancePolicy::automatic && measured(shares_))
    reason = fmt::format("the shares follow the calibration: {} than with even shares", gain_text(gain(next)));
  BalanceDecision decision = move(0, std::move(next), std::move(reason));
  settling_ = options_.settle_steps;
  changes_ = 0;
  return decision;
}

std::optional<BalanceDecision> Balancer::observe(int step, std::span<const double> seconds) {
  REMUDA_CHECK(seconds.size() == shares_.size(), "one time per device, after start()");
  if (options_.policy != BalancePolicy::automatic) return std::nullopt;
  if (settling_ > 0) {
    --settling_;
    return std::nullopt;
  }
  take_times(seconds);
  if (holding_ > 0) {
    --holding_;
    return std::nullopt;
  }
  if ((!restless() && !every_device_has(1)) || (calibrated() && observed_ < kHindsightSteps)) return std::nullopt;
  if (auto retry = retry_idle(step)) return retry;
  if (restless() && hindsight_.steps() < kHindsightSteps) return std::nullopt;
  std::vector<int> next = careful_split();
  const double least = every_device_has(kSureTimes) ? options_.least_gain : kPlainGain;
  const HindsightGain known = known_gain(next);
  const double enough = restless() ? kHindsightLeast * options_.least_gain + kHindsightSureness * known.error
                                   : least + kSureness * known.error;
  if (known.gain < enough) return std::nullopt;
  std::string reason = why(next, known.gain);
  // Of a device without samples no step shows how often it is late, only its medians. Where that is what counts, it
  // would come and go for ever.
  for (size_t i = 0; i < next.size(); ++i)
    if (shares_[i] == 0 && next[i] > 0) back_after_[i] = std::clamp(2 * back_after_[i], kRetrySteps, kMostRetrySteps);
  BalanceDecision decision = move(step, std::move(next), std::move(reason));
  decision.predicted_gain = known.gain;
  if (restless()) holding_ = kHindsightSteps;
  return decision;
}

void Balancer::take_times(std::span<const double> seconds) {
  ++observed_;
  unrest_.step();
  bool complete = true;
  int newest = hindsight_.steps() + 1;
  for (size_t i = 0; i < shares_.size(); ++i) {
    idle_steps_[i] = shares_[i] == 0 ? idle_steps_[i] + 1 : 0;
    if (shares_[i] == 0) continue;
    if (!usable(seconds[i])) {
      complete = false;
      continue;
    }
    const auto shift = models_[i].add(shares_[i], seconds[i]);
    unrest_.scattered(models_[i].noise());
    if (!shift) continue;
    shifts_[i] *= *shift;
    unrest_.shifted(static_cast<int>(i));
    newest = std::min(newest, models_[i].count(shares_[i]));
  }
  if (complete) hindsight_.add(shares_, seconds);
  hindsight_.keep(restless() ? std::max(newest, kRestlessWindow) : newest);
}

Result<BalanceDecision> Balancer::limit(int step, int device, int most) {
  const Bounds before = options_.bounds.at(device);
  Bounds& bounds = options_.bounds[device];
  bounds.high = std::clamp(most / options_.unit, 0, bounds.high);
  bounds.low = std::min(bounds.low, bounds.high);
  std::vector<int> next = split();
  if (next.empty()) {  // those that were left out have to take part again
    allowed_.assign(allowed_.size(), true);
    next = split();
  }
  if (next.empty()) {
    const std::string message = no_room(options_);
    bounds = before;
    return failed(message);
  }
  std::string reason = limit_reason(moved(device, next), bounds.high * options_.unit);
  return move(step, std::move(next), std::move(reason));
}

std::optional<BalanceDecision> Balancer::allow(int step, const std::vector<bool>& devices, std::string reason) {
  REMUDA_CHECK(devices.size() == allowed_.size(), "whether each device may take samples");
  if (options_.policy != BalancePolicy::automatic) return std::nullopt;
  const std::vector<bool> before = std::exchange(allowed_, devices);
  std::vector<int> next = solve_min_max(lines(), options_.global_batch, bounds());
  if (next.empty()) {
    allowed_ = before;
    return std::nullopt;
  }
  hindsight_.keep(0);
  return move(step, std::move(next), std::move(reason));
}

/// Whether all devices that take samples were measured.
bool Balancer::measured(std::span<const int> shares) const {
  for (size_t i = 0; i < shares.size(); ++i)
    if (shares[i] > 0 && !models_[i].measured()) return false;
  return true;
}

/// A device that never took samples is assumed to be as fast as the fastest, so that it is tried.
std::vector<CostLine> Balancer::lines() const {
  std::vector<CostLine> lines(models_.size());
  const CostLine* fastest = nullptr;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!models_[i].measured()) continue;
    lines[i] = models_[i].line();
    if (!fastest || lines[i].seconds(1) < fastest->seconds(1)) fastest = &lines[i];
  }
  for (size_t i = 0; i < lines.size(); ++i)
    if (!models_[i].measured() && fastest) lines[i] = *fastest;
  return lines;
}

/// The shares that need no measurement: even, or by the given weights. Empty when the bounds leave none.
std::vector<int> Balancer::nominal() const {
  const bool fixed = options_.policy == BalancePolicy::fixed;
  const std::vector<double> weights = fixed ? options_.weights : std::vector<double>(models_.size(), 1.0);
  std::vector<int> shares = apportion(options_.global_batch, weights);
  const std::vector<Bounds> bounds = allowed_bounds();
  std::vector<CostLine> lines;
  bool within = true;
  for (size_t i = 0; i < shares.size(); ++i) {
    within = within && shares[i] >= bounds[i].low && shares[i] <= bounds[i].high;
    lines.push_back({0, weights[i] > 0 ? 1 / weights[i] : kNever});
  }
  return within ? shares : solve_min_max(lines, options_.global_batch, bounds);
}

std::vector<Bounds> Balancer::allowed_bounds() const {
  std::vector<Bounds> bounds = options_.bounds;
  for (size_t i = 0; i < bounds.size(); ++i)
    if (!allowed_[i]) bounds[i] = {0, 0};
  return bounds;
}

/// The given bounds; and a device keeps at least one sample until it was measured with one, as without samples a wrong
/// decision could not be noticed. Except where the calibration is clear (hopeless()).
std::vector<Bounds> Balancer::bounds() const {
  std::vector<Bounds> bounds = allowed_bounds();
  for (size_t i = 0; i < bounds.size(); ++i)
    if (allowed_[i] && shares_[i] > 0 && models_[i].count(1) < kSureTimes && !hopeless(static_cast<int>(i)))
      bounds[i].low = std::clamp(1, bounds[i].low, bounds[i].high);
  return bounds;
}

/// Whether, by the calibration, a single sample takes the device far longer than the others take for the whole batch.
bool Balancer::hopeless(int device) const {
  if (calibrated_[device].seconds(1) <= 0) return false;
  const std::vector<CostLine> known = lines();
  const std::vector<int> best = solve_min_max(known, options_.global_batch, allowed_bounds());
  return !best.empty() && best[device] == 0 && known[device].seconds(1) > kHopeless * slowest_s(known, best);
}

std::vector<int> Balancer::split() const {
  if (options_.policy != BalancePolicy::automatic || !measured(shares_)) return nominal();
  return solve_min_max(lines(), options_.global_batch, bounds());
}

/// The same, but no share grows far beyond the largest measured one; and decided by the last steps where medians are
/// not enough.
std::vector<int> Balancer::careful_split() const {
  std::vector<Bounds> careful = bounds();
  const int even = options_.global_batch / static_cast<int>(careful.size()) + 1;
  for (size_t i = 0; i < careful.size(); ++i)
    careful[i].high = std::min(careful[i].high, std::max(kMostGrowth * shares_[i], even));
  std::vector<int> shares = solve_min_max(lines(), options_.global_batch, careful);
  if (shares.empty() || !restless()) return shares;
  if (observed_ % kHindsightSteps != 0) return shares_;
  for (size_t i = 0; i < careful.size(); ++i)
    if (shares_[i] == 0 && idle_steps_[i] < back_after_[i]) careful[i].high = careful[i].low;
  return hindsight_.best(shapes(), careful, shares_);
}

bool Balancer::every_device_has(int times) const {
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] > 0 && (models_[i].count(shares_[i]) < times || models_[i].doubtful())) return false;
  return true;
}

double Balancer::gain(std::span<const int> next) const {
  const std::vector<CostLine> known = lines();
  return 1 - slowest_s(known, next) / slowest_s(known, shares_);
}

/// The gain according to the last steps; its error is at least that of the least certain time.
HindsightGain Balancer::known_gain(std::span<const int> next) const {
  HindsightGain known{gain(next), 0};
  if (restless()) return hindsight_.gain(shapes(), shares_, next);
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] > 0)
      known.error = std::max(known.error, models_[i].noise() / std::sqrt(models_[i].count(shares_[i])));
  return known;
}

/// How each device's time depends on its share. From the calibration where there was one: its batch sizes are far
/// apart, while those of training are near each other, so that noise would distort a line fitted to them.
std::vector<CostLine> Balancer::shapes() const {
  std::vector<CostLine> shapes = lines();
  for (size_t i = 0; i < shapes.size(); ++i)
    if (shares_[i] > 0 && calibrated_[i].seconds(1) > 0) shapes[i] = calibrated_[i];
  return shapes;
}

bool Balancer::calibrated() const {
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] > 0 && calibrated_[i].seconds(1) <= 0) return false;
  return true;
}

bool Balancer::restless() const { return unrest_.present() && calibrated(); }

std::string Balancer::name(int device) const {
  return options_.names.empty() ? fmt::format("device {}", device) : options_.names[device];
}

ShareMove Balancer::moved(int device, std::span<const int> next) const {
  return {name(device), shares_[device] * options_.unit, next[device] * options_.unit};
}

std::vector<int> Balancer::in_samples(std::vector<int> units) const {
  for (int& share : units) share *= options_.unit;
  return units;
}

void Balancer::take(std::vector<int> shares) {
  shares_ = std::move(shares);
  shares_in_samples_ = in_samples(shares_);
}

std::string Balancer::why(std::span<const int> next, double gain) const {
  const std::vector<CostLine> known = lines();
  if (restless()) {
    int most = 0;
    for (int i = 1; i < static_cast<int>(shares_.size()); ++i)
      if (std::abs(next[i] - shares_[i]) > std::abs(next[most] - shares_[most])) most = i;
    return hindsight_reason(moved(most, next), hindsight_.steps(), gain);
  }
  int shifted = -1, slowest = 0;
  double largest = kTellingShift;
  for (int i = 0; i < static_cast<int>(shares_.size()); ++i) {
    const bool explains = shifts_[i] > 1 ? next[i] < shares_[i] : next[i] > shares_[i];
    if (const double shift = std::max(shifts_[i], 1 / shifts_[i]); explains && shift >= largest) {
      shifted = i;
      largest = shift;
    }
    const bool later = known[i].seconds(shares_[i]) > known[slowest].seconds(shares_[slowest]);
    if (shares_[i] > 0 && (shares_[slowest] == 0 || later)) slowest = i;
  }
  if (shifted >= 0) return speed_reason(moved(shifted, next), shifts_[shifted], gain);
  return slowest_reason(moved(slowest, next), gain);
}

/// Idle steps after which a trial of the device costs only a small part of all time, if it is as slow as before.
double Balancer::trial_worth_after(int device) const {
  const std::vector<CostLine> known = lines();
  const double longer = known[device].seconds(1) / slowest_s(known, shares_) - 1;
  return (options_.settle_steps + kSureTimes) * std::max(0.0, longer) / kRetryCost;
}

/// A device without samples has no times: from time to time it gets one, as it may have become faster.
std::optional<BalanceDecision> Balancer::retry_idle(int step) {
  for (int i = 0; i < static_cast<int>(shares_.size()); ++i) {
    if (options_.bounds[i].high == 0 || !allowed_[i] ||
        idle_steps_[i] < std::max<double>(retry_after_[i], trial_worth_after(i)))
      continue;
    retry_after_[i] = std::min(2 * retry_after_[i], kMostRetrySteps);
    std::vector<Bounds> bounds = allowed_bounds();
    bounds[i] = {1, 1};
    std::vector<int> next = solve_min_max(lines(), options_.global_batch, bounds);
    if (next.empty()) continue;
    std::string reason = retry_reason(moved(i, next), idle_steps_[i]);
    holding_ = kSureTimes - 1;
    return move(step, std::move(next), std::move(reason));
  }
  return std::nullopt;
}

BalanceDecision Balancer::move(int step, std::vector<int> next, std::string reason) {
  BalanceDecision decision{step, in_samples(next), 0, 0, std::move(reason)};
  if (measured(shares_)) {
    decision.predicted_step_s = slowest_s(lines(), next);
    decision.predicted_gain = gain(next);
  }
  if (next == shares_) return decision;
  for (size_t i = 0; i < next.size(); ++i)
    if (std::abs(next[i] - shares_[i]) > kSmallMove * shares_[i]) hindsight_.keep(0);
  take(std::move(next));
  shifts_.assign(shares_.size(), 1);
  settling_ = options_.settle_steps;
  ++changes_;
  return decision;
}

}  // namespace remuda::balance

#include "balance/balancer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include "balance/reason.h"
#include "balance/shares.h"
#include "base/check.h"

namespace remuda::balance {
namespace {

constexpr int kSureTimes = 3;          // times that make a median, which no single spike moves
constexpr double kPlainGain = 0.3;     // a gain that is taken from a single time of each device, sure or not
constexpr int kMostGrowth = 3;         // times its present share, unless that is below the even share
constexpr double kSureness = 1.5;      // standard errors by which a gain must exceed the least one
constexpr double kTellingShift = 1.1;  // a change of speed that explains a move
constexpr int kRetrySteps = 200;       // idle steps until a device is tried again; each retry doubles them
constexpr int kMostRetrySteps = 3200;
constexpr double kNever = 1e9;  // seconds per sample of a device that was given the weight 0

/// A clock that jumped is no measurement.
bool usable(double seconds) { return seconds > 1e-9 && seconds < 1e6; }

std::string no_room(const BalanceOptions& options) {
  int64_t room = 0;
  for (const Bounds& bounds : options.bounds) room += bounds.high;
  return fmt::format("the global batch of {} samples does not fit: the devices together take {} at most",
                     options.global_batch, room);
}

}  // namespace

Balancer::Balancer(BalanceOptions options) : options_(std::move(options)) {
  const size_t devices = options_.bounds.size();
  REMUDA_CHECK(devices > 0 && options_.global_batch > 0, "there are devices, and samples for them");
  REMUDA_CHECK(options_.policy != BalancePolicy::fixed || options_.weights.size() == devices, "one weight per device");
  models_.resize(devices);
  shifts_.assign(devices, 1);
  idle_steps_.assign(devices, 0);
  retry_after_.assign(devices, kRetrySteps);
}

void Balancer::calibrate(int device, int batch, double seconds) {
  if (batch > 0 && usable(seconds)) models_.at(device).add(batch, seconds);
}

Result<BalanceDecision> Balancer::start() {
  shares_ = nominal();
  if (shares_.empty()) return failed(no_room(options_));
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
  for (size_t i = 0; i < shares_.size(); ++i) {
    idle_steps_[i] = shares_[i] == 0 ? idle_steps_[i] + 1 : 0;
    if (shares_[i] > 0 && usable(seconds[i])) shifts_[i] *= models_[i].add(shares_[i], seconds[i]).value_or(1);
  }
  if (holding_ > 0) {
    --holding_;
    return std::nullopt;
  }
  if (!every_device_has(1)) return std::nullopt;
  if (auto retry = retry_idle(step)) return retry;
  std::vector<int> next = careful_split();
  const double least = every_device_has(kSureTimes) ? options_.least_gain : kPlainGain;
  if (gain(next) < least + kSureness * gain_error()) return std::nullopt;
  std::string reason = why(next);
  return move(step, std::move(next), std::move(reason));
}

Result<BalanceDecision> Balancer::limit(int step, int device, int most) {
  const Bounds before = options_.bounds.at(device);
  Bounds& bounds = options_.bounds[device];
  bounds.high = std::clamp(most, 0, bounds.high);
  bounds.low = std::min(bounds.low, bounds.high);
  std::vector<int> next = split();
  if (next.empty()) {
    const std::string message = no_room(options_);
    bounds = before;
    return failed(message);
  }
  std::string reason = limit_reason({name(device), shares_[device], next[device]}, bounds.high);
  return move(step, std::move(next), std::move(reason));
}

/// All devices that take samples were measured.
bool Balancer::measured(std::span<const int> shares) const {
  for (size_t i = 0; i < shares.size(); ++i)
    if (shares[i] > 0 && !models_[i].measured()) return false;
  return true;
}

/// A device that never took samples is hoped to be as fast as the fastest, so that it is tried.
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
  std::vector<CostLine> lines;
  bool within = true;
  for (size_t i = 0; i < shares.size(); ++i) {
    within = within && shares[i] >= options_.bounds[i].low && shares[i] <= options_.bounds[i].high;
    lines.push_back({0, weights[i] > 0 ? 1 / weights[i] : kNever});
  }
  return within ? shares : solve_min_max(lines, options_.global_batch, options_.bounds);
}

/// The bounds, and: no device loses its last sample before it was measured with one, as a mistake would show no times
/// to learn from.
std::vector<Bounds> Balancer::bounds() const {
  std::vector<Bounds> bounds = options_.bounds;
  for (size_t i = 0; i < bounds.size(); ++i)
    if (shares_[i] > 0 && models_[i].count(1) < kSureTimes)
      bounds[i].low = std::clamp(1, bounds[i].low, bounds[i].high);
  return bounds;
}

std::vector<int> Balancer::split() const {
  if (options_.policy != BalancePolicy::automatic || !measured(shares_)) return nominal();
  return solve_min_max(lines(), options_.global_batch, bounds());
}

/// The same, but no device grows far beyond what it was seen to do.
std::vector<int> Balancer::careful_split() const {
  std::vector<Bounds> careful = bounds();
  const int even = options_.global_batch / static_cast<int>(careful.size()) + 1;
  for (size_t i = 0; i < careful.size(); ++i)
    careful[i].high = std::min(careful[i].high, std::max(kMostGrowth * shares_[i], even));
  return solve_min_max(lines(), options_.global_batch, careful);
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

/// Relative standard error of the time that is known least.
double Balancer::gain_error() const {
  double error = 0;
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] > 0) error = std::max(error, models_[i].noise() / std::sqrt(models_[i].count(shares_[i])));
  return error;
}

std::string Balancer::name(int device) const {
  return options_.names.empty() ? fmt::format("device {}", device) : options_.names[device];
}

std::string Balancer::why(std::span<const int> next) const {
  const std::vector<CostLine> known = lines();
  int shifted = 0, slowest = 0;
  for (int i = 0; i < static_cast<int>(shares_.size()); ++i) {
    if (std::abs(std::log(shifts_[i])) > std::abs(std::log(shifts_[shifted]))) shifted = i;
    const bool later = known[i].seconds(shares_[i]) > known[slowest].seconds(shares_[slowest]);
    if (shares_[i] > 0 && (shares_[slowest] == 0 || later)) slowest = i;
  }
  const double factor = shifts_[shifted];
  if (std::max(factor, 1 / factor) >= kTellingShift)
    return speed_reason({name(shifted), shares_[shifted], next[shifted]}, factor, gain(next));
  return slowest_reason({name(slowest), shares_[slowest], next[slowest]}, gain(next));
}

/// A device without samples shows no times: now and then it gets one, as it may have become faster.
std::optional<BalanceDecision> Balancer::retry_idle(int step) {
  for (int i = 0; i < static_cast<int>(shares_.size()); ++i) {
    if (options_.bounds[i].high == 0 || idle_steps_[i] < retry_after_[i]) continue;
    std::string reason = retry_reason({name(i), 0, 1}, idle_steps_[i]);
    retry_after_[i] = std::min(2 * retry_after_[i], kMostRetrySteps);
    std::vector<Bounds> bounds = options_.bounds;
    bounds[i] = {1, 1};
    std::vector<int> next = solve_min_max(lines(), options_.global_batch, bounds);
    if (next.empty()) continue;
    holding_ = kSureTimes - 1;
    return move(step, std::move(next), std::move(reason));
  }
  return std::nullopt;
}

BalanceDecision Balancer::move(int step, std::vector<int> next, std::string reason) {
  BalanceDecision decision{step, next, 0, 0, std::move(reason)};
  if (measured(shares_)) {
    decision.predicted_step_s = slowest_s(lines(), next);
    decision.predicted_gain = gain(next);
  }
  if (next == shares_) return decision;
  shares_ = std::move(next);
  shifts_.assign(shares_.size(), 1);
  settling_ = options_.settle_steps;
  ++changes_;
  return decision;
}

}  // namespace remuda::balance

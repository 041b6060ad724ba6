#include "balance/device_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace remuda::balance {
namespace {

constexpr size_t kLevels = 6;      // batch sizes remembered
constexpr size_t kWindow = 32;     // times remembered of each
constexpr size_t kOldWeight = 4;   // times that an earlier batch size counts for at most
constexpr size_t kTrusted = 3;     // fewest times that make a median useful for comparison
constexpr double kOffLine = 0.12;  // the present median this far off the line means that old times no longer hold

constexpr double kUsualNoise = 0.04;  // assumed while little is measured,
constexpr double kUsualCount = 6;     // as if seen so many times
constexpr double kLeastNoise = 0.015;

// The cumulative sums, in units of the noise.
constexpr double kClip = 3;     // most that one time adds
constexpr double kSlack = 1;    // what each time subtracts
constexpr double kDoubt = 2.5;  // more than a single spike adds
constexpr double kAlarm = 5.5;  // the speed changed: three clipped times in a row, or more smaller ones

using Times = std::deque<double>;

double median(const Times& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

/// Sum of how far the times are from their median, relative to it.
double spread(const Times& times) {
  const double middle = median(times);
  double sum = 0;
  for (const double seconds : times) sum += std::abs(std::log(seconds / middle));
  return sum;
}

/// Where to cut so that both parts are as constant as possible: the first index of the second part.
size_t change_point(const Times& times) {
  size_t best = times.size() - 1;
  double least = std::numeric_limits<double>::max();
  for (size_t cut = 1; cut < times.size(); ++cut) {
    const auto border = times.begin() + static_cast<long>(cut);
    const double sum = spread({times.begin(), border}) + spread({border, times.end()});
    if (sum < least) least = sum, best = cut;
  }
  return best;
}

}  // namespace

DeviceModel::Level& DeviceModel::level(int batch) {
  const auto found = std::find_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.batch == batch; });
  if (found == levels_.end()) {
    if (levels_.size() == kLevels) levels_.erase(levels_.begin());
    levels_.push_back({batch, {}});
  } else {
    std::rotate(found, found + 1, levels_.end());
  }
  return levels_.back();
}

std::optional<double> DeviceModel::add(int batch, double seconds) {
  if (measured() && levels_.back().batch != batch) slower_ = faster_ = 0;
  auto& times = level(batch).seconds;
  if (times.size() >= kTrusted) {
    const double error = std::log(seconds / median(times)) / noise();
    slower_ = std::max(0.0, slower_ + std::clamp(error, -kClip, kClip) - kSlack);
    faster_ = std::max(0.0, faster_ + std::clamp(-error, -kClip, kClip) - kSlack);
  }
  times.push_back(seconds);
  if (times.size() > kWindow) times.pop_front();
  if (std::max(slower_, faster_) <= kAlarm) return std::nullopt;
  return rescale();
}

/// Takes the newest times of the current batch size as the new speed; all older ones are dropped or scaled to it.
double DeviceModel::rescale() {
  slower_ = faster_ = 0;
  auto& times = levels_.back().seconds;
  const size_t border = change_point(times);
  const double before = median({times.begin(), times.begin() + border});
  times.erase(times.begin(), times.begin() + border);
  const double factor = median(times) / before;
  for (size_t i = 0; i + 1 < levels_.size(); ++i) levels_[i].seconds = {median(levels_[i].seconds) * factor};
  return factor;
}

std::vector<BatchTime> DeviceModel::times() const {
  std::vector<BatchTime> times;
  for (const Level& level : levels_) {
    const size_t weight = &level == &levels_.back() ? level.seconds.size() : std::min(level.seconds.size(), kOldWeight);
    times.push_back({level.batch, median(level.seconds), static_cast<double>(weight)});
  }
  return times;
}

CostLine DeviceModel::line() const {
  const std::vector<BatchTime> points = times();
  const CostLine line = fit_line(points);
  const double off = points.back().seconds / line.seconds(points.back().batch);
  if (std::abs(std::log(off)) < kOffLine) return line;
  return {line.fixed_s * off, line.per_sample_s * off};
}

bool DeviceModel::doubtful() const { return std::max(slower_, faster_) > kDoubt; }

int DeviceModel::count(int batch) const {
  for (const Level& level : levels_)
    if (level.batch == batch) return static_cast<int>(level.seconds.size());
  return 0;
}

double DeviceModel::noise() const {
  Times errors;
  for (const Level& level : levels_) {
    if (level.seconds.size() < kTrusted) continue;
    const double middle = median(level.seconds);
    for (const double seconds : level.seconds) errors.push_back(std::abs(std::log(seconds / middle)));
  }
  const double seen = errors.empty() ? 0 : 1.4826 * median(errors);
  const double count = static_cast<double>(errors.size());
  const double variance = (kUsualCount * kUsualNoise * kUsualNoise + count * seen * seen) / (kUsualCount + count);
  return std::max(kLeastNoise, std::sqrt(variance));
}

}  // namespace remuda::balance

#include "balance/update_times.h"

#include <algorithm>

namespace remuda::balance {
namespace {

constexpr size_t kUpdates = 16;     // last ones that count
constexpr size_t kSureUpdates = 5;  // that make a median

}  // namespace

double median_of(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

void UpdateTimes::add(std::span<const double> update_s, std::span<const double> parts) {
  for (size_t i = 0; i < seconds_.size(); ++i) {
    if (!(parts[i] > 0 && update_s[i] > 0)) continue;
    seconds_[i].push_back(update_s[i] / parts[i]);
    if (seconds_[i].size() > kUpdates) seconds_[i].pop_front();
  }
}

std::optional<double> UpdateTimes::of(size_t device) const {
  return seconds_[device].size() < kSureUpdates ? std::nullopt : std::optional(median_of(seconds_[device]));
}

void UpdateTimes::clear() {
  for (auto& seconds : seconds_) seconds.clear();
}

bool MovePace::may_move(double longest_s, double then_s) {
  constexpr int kLonger = 4, kLongest = 1 << 28;
  const bool has_disappointed = before_s_ > 0 && longest_s > (before_s_ + expected_s_) / 2;
  before_s_ = has_disappointed ? 0 : longest_s;
  expected_s_ = then_s;
  if (has_disappointed) pause_ = std::min(kLonger * pause_, kLongest);
  return !has_disappointed;
}

}  // namespace remuda::balance

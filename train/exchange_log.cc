#include "train/exchange_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace remuda::train {
namespace {

constexpr size_t kMostSteps = 1000;  // more would change no median by much

void keep(std::vector<double>& all, double value) {
  if (all.size() < kMostSteps) all.push_back(value);
}

/// But for the first, where there are others.
double median(std::vector<double> all) {
  if (all.empty()) return NAN;
  if (all.size() > 1) all.erase(all.begin());
  const auto middle = all.begin() + long(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return *middle;
}

}  // namespace

Json to_json(const ExchangeCosts& costs) {
  return {{"steps", costs.steps}, {"step_s", costs.step_s}, {"sent_bytes", costs.sent_bytes}};
}

void ExchangeLog::made(double step_s, double sent_bytes) {
  keep(step_s_, step_s);
  keep(sent_bytes_, sent_bytes);
  is_timed_ = false;
}

void ExchangeLog::timed(const StepTotals& totals) {
  if (std::exchange(is_timed_, true)) return;
  keep(data_s_, std::ranges::max(totals.data_s));
  keep(wait_s_, std::ranges::min(totals.wait_s));
  keep(gradient_wait_s_, std::ranges::min(totals.gradient_wait_s));
}

std::optional<ExchangeCosts> ExchangeLog::costs() const {
  if (step_s_.empty()) return std::nullopt;
  return ExchangeCosts{int(step_s_.size()), median(step_s_), median(sent_bytes_),
                       median(data_s_),     median(wait_s_), median(gradient_wait_s_)};
}

}  // namespace remuda::train

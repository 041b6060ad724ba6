#include "balance/state_moves.h"

#include <algorithm>

#include "base/check.h"

namespace remuda::balance {
namespace {

constexpr int kUnsettled = 3;          // the first ones of a run, and those after a move
constexpr size_t kLastSteps = 16;      // last ones, whose median is what a step takes
constexpr double kOfFreeMemory = 0.9;  // of the memory that was free in each step

double longest_s(std::span<const StateOwner> owners, std::span<const double> parts) {
  double longest = 0;
  for (size_t i = 0; i < owners.size(); ++i) longest = std::max(longest, parts[i] * owners[i].update_s);
  return longest;
}

}  // namespace

StateMoves::StateMoves(std::vector<StateOwner> owners, const StateBytes& bytes, std::vector<double> parts)
    : owners_(std::move(owners)),
      bytes_(bytes),
      parts_(std::move(parts)),
      updates_(owners_.size()),
      peak_bytes_(owners_.size()) {
  REMUDA_CHECK(parts_.size() == owners_.size(), "one part per owner");
}

/// What steps need of memory besides is only known where it is counted.
double StateMoves::most_of(size_t device, double peak_bytes) const {
  const StateOwner& owner = owners_[device];
  if (peak_bytes <= 0 || owner.memory_bytes <= 0 || bytes_.owned <= 0) return 1;
  const double free_bytes = std::max(0.0, owner.memory_bytes - peak_bytes);
  return std::min(1.0, parts_[device] + kOfFreeMemory * free_bytes / bytes_.owned);
}

std::optional<std::vector<double>> StateMoves::observe(const StateSeen& step) {
  REMUDA_CHECK(step.update_s.size() == owners_.size() && step.peak_bytes.size() == owners_.size(),
               "one of each per owner");
  for (size_t i = 0; i < owners_.size(); ++i) peak_bytes_[i] = std::max(peak_bytes_[i], step.peak_bytes[i]);
  if (!(step.step_s > 0) || ++since_move_ <= kUnsettled) return std::nullopt;
  updates_.add(step.update_s, parts_);
  steps_s_.push_back(step.step_s);
  if (steps_s_.size() > kLastSteps) steps_s_.pop_front();
  if (!pace_.is_due(since_move_)) return std::nullopt;
  for (size_t i = 0; i < owners_.size(); ++i) {
    owners_[i].update_s = updates_.of(i).value_or(owners_[i].update_s);
    const bool is_known = owners_[i].update_s > 0;
    if (!is_known && parts_[i] > 0) return std::nullopt;  // its steps have not shown it yet
    owners_[i].most = is_known ? most_of(i, peak_bytes_[i]) : 0;
  }
  std::vector<double> best = state_parts(owners_, bytes_);
  const double now_s = longest_s(owners_, parts_), then_s = longest_s(owners_, best);
  if (now_s - then_s < kWorthMoving * median_of(steps_s_) || !pace_.may_move(now_s, then_s)) return std::nullopt;
  for (size_t i = 0; i < peak_bytes_.size(); ++i)  // what it holds of the state is a part of it
    if (peak_bytes_[i] > 0) peak_bytes_[i] += (best[i] - parts_[i]) * bytes_.owned;
  updates_.clear();
  steps_s_.clear();
  since_move_ = 0;
  return parts_ = std::move(best);
}

}  // namespace remuda::balance

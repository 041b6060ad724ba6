#include "train/memory_plan.h"

#include <algorithm>
#include <iterator>

namespace remuda::train {
namespace {

constexpr size_t kCarefulSizes = 3;  // as many as are measured with care (trial_batches)

int divided_up(int count, int by) { return (count + by - 1) / by; }

}  // namespace

double MemoryNeed::peak(int samples) const { return held + std::max(least, fixed + per_sample * samples); }

MemoryNeed fit_memory(const std::map<int, double>& taken) {
  if (taken.empty()) return {};
  const auto large = std::prev(taken.end());
  const auto small = std::prev(taken.end(), static_cast<long>(std::min(kCarefulSizes, taken.size())));
  MemoryNeed need{.known = 1, .fixed = large->second, .least = taken.begin()->second};
  if (small == large) return need;
  need.per_sample = std::max(0.0, (large->second - small->second) / (large->first - small->first));
  need.fixed = large->second - need.per_sample * large->first;
  return need;
}

int MemoryPlan::largest_piece(int samples, int pieces) const {
  return micro_batch_ > 0 ? std::min(samples, micro_batch_) : divided_up(samples, pieces);
}

bool MemoryPlan::fits(int rank, int samples, int pieces) const {
  const MemoryNeed& need = needs_[size_t(rank)];
  return need.known == 0 || need.room == 0 || need.peak(largest_piece(samples, pieces)) <= need.room;
}

bool MemoryPlan::fits(const std::vector<int>& parts) const {
  for (size_t rank = 0; rank < parts.size(); ++rank)
    if (parts[rank] > 0 && !fits(int(rank), parts[rank], pieces_[rank])) return false;
  return true;
}

int MemoryPlan::pieces(int rank, int samples) const {
  if (micro_batch_ > 0) return std::max(1, divided_up(samples, micro_batch_));
  const int most = most_pieces(samples);
  int count = std::clamp(pieces_[size_t(rank)], 1, most);
  while (count < most && !fits(rank, samples, count)) count = std::min(2 * count, most);
  return count;
}

bool MemoryPlan::cut(int rank, int samples) {
  const int now = pieces(rank, samples);
  if (micro_batch_ > 0 || now >= most_pieces(samples)) return false;
  pieces_[size_t(rank)] = std::min(2 * now, most_pieces(samples));
  return true;
}

std::optional<double> MemoryPlan::peak(int rank, int samples) const {
  const MemoryNeed& need = needs_[size_t(rank)];
  if (need.known == 0 || samples == 0) return std::nullopt;
  return need.peak(largest_piece(samples, pieces(rank, samples)));
}

}  // namespace remuda::train

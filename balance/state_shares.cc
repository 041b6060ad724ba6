#include "balance/state_shares.h"

#include <algorithm>
#include <numeric>

namespace remuda::balance {
namespace {

/// Of a device's memory, what state may take: the rest is for what libraries and allocators keep.
constexpr double kUsable = 0.9;

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// The part of everything that has room in it.
double room_for_state(const StateOwner& rank, const StateBytes& bytes) {
  if (rank.role != Role::state) return 0;
  if (rank.memory_bytes <= 0 || bytes.owned <= 0) return 1;
  return std::clamp((kUsable * rank.memory_bytes - bytes.whole) / bytes.owned, 0.0, 1.0);
}

}  // namespace

std::vector<double> state_shares(std::span<const StateOwner> ranks, const StateBytes& bytes) {
  const bool all_known = std::ranges::all_of(
      ranks, [](const StateOwner& rank) { return rank.role != Role::compute || rank.memory_bytes > 0; });
  std::vector<double> shares, of_rest;
  for (const StateOwner& rank : ranks) {
    shares.push_back(room_for_state(rank, bytes));
    of_rest.push_back(rank.role != Role::compute ? 0 : all_known ? rank.memory_bytes : 1);
  }
  const double rest = 1 - sum_of(shares), computing = sum_of(of_rest);
  if (rest <= 0 || computing <= 0) return shares;
  for (size_t i = 0; i < shares.size(); ++i) shares[i] += rest * of_rest[i] / computing;
  return shares;
}

}  // namespace remuda::balance

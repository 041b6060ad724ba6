// Which part of the state each device owns.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "balance/split.h"

namespace remuda::balance {
namespace {

/// Of a device's memory, what state may take: the rest is for what libraries and allocators keep.
constexpr double kUsable = 0.9;

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// `total` in proportion to the weights, but none above its room: what one has no room for, the others get in the same
/// proportion. Less than `total` where there is no room for it.
std::vector<double> fill(double total, std::span<const double> weights, std::span<const double> rooms) {
  std::vector<double> parts(weights.size(), 0);
  std::vector<bool> is_full(weights.size(), false);
  for (bool again = true; again;) {
    again = false;
    double left = total, weight = 0;
    for (size_t i = 0; i < parts.size(); ++i) (is_full[i] ? left : weight) += is_full[i] ? -parts[i] : weights[i];
    if (weight <= 0 || left <= 0) break;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (is_full[i]) continue;
      parts[i] = left * weights[i] / weight;
      if (parts[i] <= rooms[i]) continue;
      parts[i] = rooms[i];
      is_full[i] = again = true;
    }
  }
  return parts;
}

/// How fast those with this role are, or how large.
std::vector<double> weights_of(std::span<const StateOwner> owners, bool for_state, std::span<const double> rooms) {
  const auto counts = [&](size_t i) {
    return owners[i].role != Role::preprocess && (owners[i].role == Role::state) == for_state && rooms[i] > 0;
  };
  bool times_known = true, memory_known = true;
  for (size_t i = 0; i < owners.size(); ++i) {
    times_known = times_known && (!counts(i) || owners[i].update_s > 0);
    memory_known = memory_known && (!counts(i) || owners[i].memory_bytes > 0);
  }
  std::vector<double> weights(owners.size(), 0);
  for (size_t i = 0; i < owners.size(); ++i)
    if (counts(i)) weights[i] = times_known ? 1 / owners[i].update_s : memory_known ? owners[i].memory_bytes : 1;
  return weights;
}

}  // namespace

double room_for_state(const StateOwner& owner, const StateBytes& bytes) {
  const double most = std::clamp(owner.most, 0.0, 1.0);
  if (owner.memory_bytes <= 0 || bytes.owned <= 0) return most;
  return std::clamp((kUsable * owner.memory_bytes - bytes.whole) / bytes.owned, 0.0, most);
}

std::vector<double> state_parts(std::span<const StateOwner> owners, const StateBytes& bytes) {
  std::vector<double> rooms;
  for (const StateOwner& owner : owners) rooms.push_back(room_for_state(owner, bytes));
  std::vector<double> parts = fill(1, weights_of(owners, true, rooms), rooms);
  const std::vector<double> rest = fill(1 - sum_of(parts), weights_of(owners, false, rooms), rooms);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] += rest[i];
  double sum = sum_of(parts);
  if (sum <= 0) {  // no room on any
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = owners[i].role == Role::preprocess ? 0 : 1;
    sum = sum_of(parts);
  }
  for (double& part : parts) part /= sum > 0 ? sum : 1;
  return parts;
}

}  // namespace remuda::balance

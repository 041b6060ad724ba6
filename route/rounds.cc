#include "route/rounds.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace remuda::route {
namespace {

constexpr double kRounding = 1 + 1e-9;  // speeds that add up to a channel's own are not to fail by their last bit

}  // namespace

std::optional<Cost> Rounds::divide(const Step& step, size_t chunks, std::span<const size_t> devices) {
  const auto route_of = [&](const Move& move) -> const Route& {
    return network_.routes[devices[move.from]][devices[move.to]];
  };
  lengths_.clear();
  for (const Move& move : step) {
    const double gbps = route_of(move).gbps;
    if (gbps <= 0) return std::nullopt;
    lengths_.push_back(static_cast<double>(move.chunks()) / (static_cast<double>(chunks) * gbps * 1e9));
  }
  by_length_.resize(step.size());
  std::iota(by_length_.begin(), by_length_.end(), 0);
  const auto key = [&](size_t move) {
    const size_t from = devices[step[move].from], to = devices[step[move].to];
    return std::tuple(-lengths_[move], (to + network_.size() - from) % network_.size(), from);
  };
  std::ranges::sort(by_length_, [&](size_t a, size_t b) { return key(a) < key(b); });
  rounds_.assign(step.size(), 0);
  costs_.clear();
  load_.clear();
  for (const size_t move : by_length_) {
    const Route& route = route_of(step[move]);
    const size_t round = rounds_[move] = find_room(route);
    for (const size_t channel : route.channels) load_[round * network_.channels.size() + channel] += route.gbps;
    Cost& cost = costs_[round];
    cost.latency_s = std::max(cost.latency_s, route.latency_us * 1e-6);
    cost.s_per_byte = std::max(cost.s_per_byte, lengths_[move]);
  }
  Cost all;
  for (const Cost& cost : costs_) all += cost;
  return all;
}

/// The first round with room on all channels of the route, or a new one.
size_t Rounds::find_room(const Route& route) {
  const size_t count = network_.channels.size();
  for (size_t round = 0; round < costs_.size(); ++round)
    if (std::ranges::all_of(route.channels, [&](size_t channel) {
          return load_[round * count + channel] + route.gbps <= network_.channels[channel].gbps * kRounding;
        }))
      return round;
  costs_.emplace_back();
  load_.resize(load_.size() + count, 0);
  return costs_.size() - 1;
}

}  // namespace remuda::route

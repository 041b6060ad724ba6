#include "route/search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace remuda::route {
namespace {

size_t order_count(const Pattern& pattern) {
  size_t count = 1;
  for (const size_t group : pattern.groups)
    for (size_t i = 2; i <= group; ++i) {
      count *= i;
      if (count > kMostOrdersTried) return count;
    }
  return count;
}

/// The next order within the groups; false after the last one, and `order` is the first again.
bool next_order(const std::vector<size_t>& groups, Order& order) {
  auto begin = order.begin();
  for (const size_t group : groups) {
    if (std::next_permutation(begin, begin + static_cast<std::ptrdiff_t>(group))) return true;
    begin += static_cast<std::ptrdiff_t>(group);
  }
  return false;
}

void sort_groups(const std::vector<size_t>& groups, Order& order) {
  auto begin = order.begin();
  for (const size_t group : groups) {
    std::sort(begin, begin + static_cast<std::ptrdiff_t>(group));
    begin += static_cast<std::ptrdiff_t>(group);
  }
}

using Key = std::pair<double, double>;
using KeyOf = Key (*)(const Cost&);

Key by_rate(const Cost& cost) { return {cost.s_per_byte, cost.latency_s}; }
Key by_latency(const Cost& cost) { return {cost.latency_s, cost.s_per_byte}; }

/// Goes on from one order to a better neighbour until there is none.
class Descent {
 public:
  Descent(Pricer& pricer, const Pattern& pattern, KeyOf key)
      : pricer_(pricer), groups_(pattern.groups), key_(key), most_moves_(pricer.moves() + kMostDescentMoves) {}

  std::optional<Found> from(Order order) {
    const auto cost = pricer_.cost(order);
    if (!cost) return std::nullopt;
    Found best{*cost, std::move(order)};
    while (improve(best)) {
    }
    return best;
  }

 private:
  bool improve(Found& best) {
    size_t begin = 0;
    for (const size_t group : groups_) {
      for (size_t i = begin; i < begin + group; ++i)
        for (size_t j = i + 1; j < begin + group; ++j)
          if (try_pair(best, i, j)) return true;
      begin += group;
    }
    return false;
  }

  bool try_pair(Found& best, size_t i, size_t j) {
    Order swapped = best.order, turned = best.order;
    std::swap(swapped[i], swapped[j]);
    std::reverse(turned.begin() + static_cast<std::ptrdiff_t>(i), turned.begin() + static_cast<std::ptrdiff_t>(j) + 1);
    return try_order(best, std::move(swapped)) || (j > i + 2 && try_order(best, std::move(turned)));
  }

  bool try_order(Found& best, Order order) {
    if (pricer_.moves() >= most_moves_) return false;
    const auto cost = pricer_.cost(order);
    if (!cost || key_(*cost) >= key_(best.cost)) return false;
    best = {*cost, std::move(order)};
    return true;
  }

  Pricer& pricer_;
  const std::vector<size_t>& groups_;
  KeyOf key_;
  size_t most_moves_;
};

bool is_alike(const Step& a, const Step& b) {
  return std::ranges::equal(a, b, [](const Move& x, const Move& y) {
    return std::tuple(x.from, x.to, x.chunks()) == std::tuple(y.from, y.to, y.chunks());
  });
}

}  // namespace

Order index_order(size_t size) {
  Order order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Pricer::Pricer(const Network& network, const Pattern& pattern) : rounds_(network), chunks_(pattern.chunks) {
  for (const Step& step : pattern.steps) {
    const auto same = std::ranges::find_if(steps_, [&](const Repeated& known) { return is_alike(known.step, step); });
    if (same == steps_.end())
      steps_.push_back({step});
    else
      ++same->times;
  }
}

std::optional<Cost> Pricer::cost(const Order& order) {
  Cost all;
  for (const auto& [step, times] : steps_) {
    moves_ += step.size();
    const auto once = rounds_.divide(step, chunks_, order);
    if (!once) return std::nullopt;
    all += {once->latency_s * times, once->s_per_byte * times};
  }
  return all;
}

void add_unless_beaten(Found found, std::vector<Found>& best) {
  const auto is_as_good = [](const Cost& a, const Cost& b) {
    return a.latency_s <= b.latency_s && a.s_per_byte <= b.s_per_byte;
  };
  if (std::ranges::any_of(best, [&](const Found& known) { return is_as_good(known.cost, found.cost); })) return;
  std::erase_if(best, [&](const Found& known) { return is_as_good(found.cost, known.cost); });
  best.push_back(std::move(found));
}

SearchResult best_orders(const Network& network, const Pattern& pattern, const Order& start,
                         const std::vector<Order>& others) {
  Pricer pricer(network, pattern);
  SearchResult result{.exact = order_count(pattern) <= kMostOrdersTried};
  if (const auto cost = pricer.cost(start)) add_unless_beaten({*cost, start}, result.best);
  if (result.exact) {
    Order order = start;
    sort_groups(pattern.groups, order);
    do
      if (const auto cost = pricer.cost(order)) add_unless_beaten({*cost, order}, result.best);
    while (next_order(pattern.groups, order));
    result.moves = pricer.moves();
    return result;
  }
  std::vector<Order> starts = others;
  starts.insert(starts.begin(), start);
  for (const KeyOf key : {&by_rate, &by_latency})
    for (const Order& each : starts)
      if (auto found = Descent(pricer, pattern, key).from(each)) add_unless_beaten(std::move(*found), result.best);
  result.moves = pricer.moves();
  return result;
}

}  // namespace remuda::route

#include "bench/placement_policy.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "place/place.h"

namespace remuda::bench {
namespace {

Mask lowest(Mask free, int count) {
  Mask set = 0;
  for (; count > 0; --count, free &= free - 1) set |= free & -free;
  return set;
}

/// The best cut of the free GPUs, found from the first set on: its score, and that set.
class PairScore {
 public:
  explicit PairScore(const ReplayMachine& machine) : scores_(size_t{1} << machine.size(), 0) {
    for (Mask set = 1; set < scores_.size(); ++set) {
      const Mask rest = set & (set - 1);
      scores_[set] = scores_[rest];
      for (Mask other = rest; other != 0; other &= other - 1)
        scores_[set] += machine.points[first_of(set)][first_of(other)];
    }
  }

  Mask pick(Mask free, int count) {
    if (count == 1) return lowest(free, 1);
    int missing = (count - std::popcount(free) % count) % count;
    Mask best = 0;
    int best_score = -1;
    for (Mask rest = free; rest != 0;) {
      const Mask set = cut(rest, missing, count).set;
      if (std::popcount(set) < count) missing = 0;
      if (scores_[set] > best_score) best_score = scores_[set], best = set;
      rest &= ~set;
    }
    return std::popcount(best) < count ? lowest(free, count) : best;
  }

 private:
  struct Cut {
    int score = -1;
    Mask set = 0;  ///< the one with the lowest GPU
  };

  static size_t first_of(Mask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

  /// `missing`: how many GPUs one set among those still to be made lacks; 0 once it is made.
  Cut cut(Mask free, int missing, int count) {
    if (std::popcount(free) + missing <= count) return {scores_[free], free};
    const auto key = std::tuple(free, missing, count);
    if (const auto known = cuts_.find(key); known != cuts_.end()) return known->second;
    Cut best;
    const auto consider = [&](Mask set, int still_missing) {
      const Mask rest = free & ~set;
      if (rest == 0) return;
      const int score = scores_[set] + cut(rest, still_missing, count).score;
      if (score > best.score) best = {score, set};
    };
    each_set(free & -free, free & (free - 1), count - 1, missing, consider);
    return cuts_[key] = best;
  }

  /// Sets that begin with `set`, in lexicographic order, a missing GPU being last; full ones and those that lack all of
  /// `missing`.
  template <typename Consider>
  void each_set(Mask set, Mask others, int wanted, int missing, const Consider& consider) {
    if (wanted == 0) return consider(set, missing);
    for (; others != 0; others &= others - 1) {
      const Mask next = others & -others;
      each_set(set | next, others ^ next, wanted - 1, missing, consider);
    }
    if (missing > 0 && wanted == missing) consider(set, 0);
  }

  std::vector<int> scores_;
  std::map<std::tuple<Mask, int, int>, Cut> cuts_;
};

/// What placement answers when all but `free` are held.
Mask ask(const ReplayMachine& machine, const place::Layout& layout, Mask free, int count) {
  std::vector<place::Held> held;
  for (size_t i = 0; i < machine.size(); ++i)
    if (!(free >> i & 1)) held.push_back({.device = machine.inventory.devices[machine.gpus[i]].id});
  const auto answer = place::place(layout, {.count = count, .any_model = true}, held);
  REMUDA_CHECK(answer && std::holds_alternative<place::Placement>(*answer), "enough GPUs are free");
  const auto& devices = std::get<place::Placement>(*answer).devices;
  Mask set = 0;
  for (size_t i = 0; i < machine.size(); ++i)
    if (std::ranges::find(devices, machine.inventory.devices[machine.gpus[i]].id) != devices.end()) set |= Mask{1} << i;
  return set;
}

}  // namespace

Policy random_policy(uint64_t seed) {
  return [generator = std::mt19937_64(seed)](Mask free, int count) mutable {
    Mask set = 0;
    for (; count > 0; --count) {
      Mask rest = free & ~set;
      for (auto skip = generator() % static_cast<uint64_t>(std::popcount(rest)); skip > 0; --skip) rest &= rest - 1;
      set |= rest & -rest;
    }
    return set;
  };
}

Policy index_policy() { return lowest; }

Policy pair_score_policy(const ReplayMachine& machine) {
  return [rule = std::make_shared<PairScore>(machine)](Mask free, int count) { return rule->pick(free, count); };
}

Policy remuda_policy(const ReplayMachine& machine) {
  auto layout = std::make_shared<place::Layout>(machine.inventory);
  layout->prepare();
  // Placement is pure: what was answered once holds.
  auto known = std::make_shared<std::map<std::pair<Mask, int>, Mask>>();
  return [&machine, layout, known](Mask free, int count) {
    const auto [entry, is_new] = known->try_emplace({free, count}, 0);
    if (is_new) entry->second = ask(machine, *layout, free, count);
    return entry->second;
  };
}

}  // namespace remuda::bench

// Checks the guarantees of place.h, on arbitrary machines, against a search written only from the contract.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <rapidcheck/gtest.h>
#include <set>
#include <tuple>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

struct Case {
  Inventory inventory;
  Request request;
  std::vector<Held> held;
};

Inventory arbitrary_machine(int gpus) {
  Inventory inventory = make_gpus(gpus);
  const std::vector<std::vector<double>> palettes{{10, 100}, {10, 14, 16, 24, 50}, {0, 10, 25}, {25}};
  const auto palette = *rc::gen::elementOf(palettes);
  const bool mixed = *rc::gen::arbitrary<bool>();
  for (int a = 0; a < gpus; ++a) {
    Device& gpu = inventory.devices[static_cast<size_t>(a)];
    gpu.numa_node = *rc::gen::inRange(0, 2);
    gpu.pcie_root = *rc::gen::element<std::string>("pci0000:00", "pci0000:20");
    if (mixed) gpu.model = *rc::gen::element<std::string>("Acme A100-SXM4-40GB", "Acme H100");
    gpu.memory_bytes = *rc::gen::element(24, 40) * kGiB;
    for (int b = 0; b < a; ++b)
      if (const double gbps = *rc::gen::elementOf(palette); gbps > 0) join(inventory, a, b, gbps);
  }
  return inventory;
}

Case arbitrary_case(int most) {
  const int gpus = *rc::gen::inRange(1, most + 1);
  Case one{.inventory = arbitrary_machine(gpus)};
  one.request.count = *rc::gen::inRange(1, gpus + 1);
  one.request.any_model = *rc::gen::arbitrary<bool>();
  one.request.memory_bytes = *rc::gen::element(0, 40) * kGiB;
  for (int i = 0; i < gpus; ++i)
    if (*rc::gen::inRange(0, 4) == 0) one.held.push_back({.device = "gpu:" + std::to_string(i), .holder = "alice"});
  return one;
}

/// Written from place.h, sharing no code with the search.
class Reference {
 public:
  using Set = std::vector<size_t>;
  using Standing = std::tuple<double, int, int, int, int64_t>;  ///< less is better

  explicit Reference(const Case& one)
      : one_(one), n_(one.inventory.devices.size()), gbps_(n_, std::vector<double>(n_)) {
    for (const MeasuredLink& link : one.inventory.measured_links) {
      const auto a = static_cast<size_t>(std::stoi(link.a.substr(4))),
                 b = static_cast<size_t>(std::stoi(link.b.substr(4)));
      gbps_[a][b] = gbps_[b][a] = link.gbps;
    }
  }

  bool is_held(size_t i) const {
    return std::ranges::any_of(one_.held, [&](const Held& held) { return held.device == device(i).id; });
  }

  bool satisfies(const Set& set) const {
    for (const size_t i : set) {
      if (is_held(i) || device(i).memory_bytes.value() < one_.request.memory_bytes) return false;
      if (!one_.request.any_model && device(i).model != device(set.front()).model) return false;
    }
    return set.size() == static_cast<size_t>(one_.request.count);
  }

  std::vector<Set> satisfying() const {
    std::vector<Set> sets;
    for (unsigned mask = 1; mask < 1u << n_; ++mask) {
      Set set;
      for (size_t i = 0; i < n_; ++i)
        if (mask >> i & 1) set.push_back(i);
      if (satisfies(set)) sets.push_back(set);
    }
    return sets;
  }

  Standing standing(const Set& set) const {
    std::set<std::string> models, roots;
    std::set<int> nodes;
    for (const size_t i : set) {
      models.insert(device(i).model);
      nodes.insert(device(i).numa_node.value());
      roots.insert(device(i).pcie_root.value());
    }
    const int unlike = static_cast<int>(models.size());
    return {-ring(set), unlike, static_cast<int>(nodes.size()), static_cast<int>(roots.size()),
            -std::llround(left(set) * 1e6)};
  }

  double ring(Set order) const {
    if (order.size() < 2) return 1e9;
    double best = 0;
    do {
      double slowest = 1e9;
      for (size_t i = 0; i < order.size(); ++i)
        slowest = std::min(slowest, gbps_[order[i]][order[(i + 1) % order.size()]]);
      best = std::max(best, slowest);
    } while (std::next_permutation(order.begin() + 1, order.end()));
    return best;
  }

 private:
  const Device& device(size_t i) const { return one_.inventory.devices[i]; }

  double link(size_t a, size_t b) const {
    return one_.request.any_model || device(a).model == device(b).model ? gbps_[a][b] : 0;
  }

  double best_four(const Set& free) const {
    double best = 0;
    for (const size_t a : free)
      for (const size_t b : free)
        for (const size_t c : free)
          for (const size_t d : free)
            if (std::set{a, b, c, d}.size() == 4)
              best = std::max(best, std::min({link(a, b), link(b, c), link(c, d), link(d, a)}));
    return best;
  }

  std::pair<double, double> best_pair_and_sum(const Set& free) const {
    double best = 0, sum = 0;
    for (const size_t a : free) {
      double own = 0;
      for (const size_t b : free)
        if (a != b) own = std::max(own, link(a, b));
      best = std::max(best, own);
      sum += own;
    }
    return {best, sum};
  }

  double left(const Set& set) const {
    Set all(n_), free;
    std::iota(all.begin(), all.end(), size_t{0});
    for (const size_t i : all)
      if (!is_held(i) && std::ranges::find(set, i) == set.end()) free.push_back(i);
    const auto [pair, sum] = best_pair_and_sum(free);
    const double all_pair = best_pair_and_sum(all).first, all_four = best_four(all);
    if (all_pair == 0) return 0;
    return pair / all_pair + (all_four > 0 ? best_four(free) / all_four : 0) + sum / 2 / all_pair;
  }

  const Case& one_;
  size_t n_;
  std::vector<std::vector<double>> gbps_;
};

Reference::Set set_of(const Placement& placement) {
  Reference::Set set;
  for (const std::string& id : placement.devices) set.push_back(static_cast<size_t>(std::stoi(id.substr(4))));
  return set;
}

Result<Answer> answer(const Case& one) { return place(Layout(one.inventory), one.request, one.held); }

RC_GTEST_PROP(Place, TakesTheBestOfTheSatisfyingSets, ()) {
  const Case one = arbitrary_case(7);
  const Reference reference(one);
  const auto sets = reference.satisfying();
  const Answer got = answer(one).value();
  RC_ASSERT(std::holds_alternative<Placement>(got) == !sets.empty());
  if (sets.empty()) return;
  const auto chosen = set_of(std::get<Placement>(got));
  RC_ASSERT(reference.satisfies(chosen));
  const auto mine = reference.standing(chosen);
  for (const auto& set : sets) RC_ASSERT(mine <= reference.standing(set));
  RC_ASSERT(std::get<Placement>(got).explanation.considered == static_cast<int64_t>(sets.size()));
}

RC_GTEST_PROP(Place, FitsWhereItGivesAPlacement, ()) {
  Case one = arbitrary_case(7);
  one.request.link = *rc::gen::element(LinkNeed::any, LinkNeed::p2p, LinkNeed::nvlink);
  const Layout layout(one.inventory);
  const bool gives = std::holds_alternative<Placement>(answer(one).value());
  RC_CLASSIFY(gives);
  RC_ASSERT(fits(layout, one.request, one.held).value() == gives);
}

RC_GTEST_PROP(Place, TheRingItNamesIsTheBestRingOfTheSet, ()) {
  const Case one = arbitrary_case(7);
  const Answer got = answer(one).value();
  const auto* placement = std::get_if<Placement>(&got);
  if (!placement || placement->devices.size() < 2) return;
  const double gbps = Reference(one).ring(set_of(*placement));
  RC_ASSERT((placement->explanation.ring ? placement->explanation.ring->gbps : 0) == gbps);
}

RC_GTEST_PROP(Place, GivesTheSameAnswerAgainAndWhenPrepared, ()) {
  const Case one = arbitrary_case(10);
  Layout layout(one.inventory);
  const auto text = [&] {
    return std::visit([](const auto& outcome) { return to_line(to_json(outcome)); },
                      place(layout, one.request, one.held).value());
  };
  const std::string first = text();
  RC_ASSERT(text() == first);
  layout.prepare();
  RC_ASSERT(text() == first);
}

RC_GTEST_PROP(Place, TheOrderOfDevicesChangesNotHowGoodItIs, ()) {
  Case one = arbitrary_case(7);
  const Answer before = answer(one).value();
  if (!std::holds_alternative<Placement>(before)) return;
  const Reference reference(one);
  const auto standing = reference.standing(set_of(std::get<Placement>(before)));
  std::ranges::reverse(one.inventory.devices);
  std::ranges::rotate(one.inventory.devices, one.inventory.devices.begin() + one.inventory.devices.size() / 2);
  const Answer after = answer(one).value();
  RC_ASSERT(std::holds_alternative<Placement>(after));
  std::ranges::sort(one.inventory.devices, {}, &Device::index);
  auto set = set_of(std::get<Placement>(after));
  std::ranges::sort(set);
  RC_ASSERT(reference.standing(set) == standing);
}

RC_GTEST_PROP(Place, ARefusalIsNeverOnlyWhenTheIdleMachineRefusesToo, ()) {
  Case one = arbitrary_case(7);
  const Answer got = answer(one).value();
  const auto* refusal = std::get_if<Refusal>(&got);
  if (!refusal) return;
  one.held.clear();
  RC_ASSERT(std::holds_alternative<Placement>(answer(one).value()) == !refusal->never);
}

}  // namespace
}  // namespace remuda::place

#include "place/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace remuda::place {
namespace {

using Positions = Search::Positions;
using Mask = ExactSearch::Mask;

constexpr size_t kFew = topology::RingTable::kMaxDevices;
constexpr size_t kMostPools = 64;
constexpr size_t kMostConsidered = Request::kMostDevices;

/// Gives equal keys the same number, below the number of different keys.
size_t renumber(std::vector<size_t>& keys, size_t key) {
  const auto at = std::ranges::find(keys, key);
  const auto number = static_cast<size_t>(at - keys.begin());
  if (at == keys.end()) keys.push_back(key);
  return number;
}

Mask mask_of(const Positions& members) {
  Mask mask = 0;
  for (const size_t i : members) mask |= Mask{1} << i;
  return mask;
}

Positions positions_of(Mask mask) {
  Positions members;
  for (size_t i = 0; mask >> i != 0; ++i)
    if (mask >> i & 1) members.push_back(i);
  return members;
}

void keep_best(std::vector<ScoredSet>& sets) {
  std::ranges::sort(sets, [](const ScoredSet& a, const ScoredSet& b) {
    return is_better(a.score, b.score) || (!is_better(b.score, a.score) && a.members < b.members);
  });
  const auto same = [](const ScoredSet& a, const ScoredSet& b) { return a.members == b.members; };
  sets.erase(std::unique(sets.begin(), sets.end(), same), sets.end());
  if (sets.size() > kKeptSets) sets.resize(kKeptSets);
}

}  // namespace

Search::Search(const Layout& layout, const Request& request, const std::vector<Candidate>& candidates)
    : layout_(layout), request_(request), matrix_(&layout.matrix()) {
  std::vector<const Device*> can_come, with_left;
  std::map<const Device*, const Candidate*> of_device;
  bool only_gpus = !layout.matrix().devices.empty();
  for (const Candidate& one : candidates) {
    of_device[one.device] = &one;
    if (one.can_come() && can_come.size() < kMostConsidered) can_come.push_back(one.device);
    if (one.can_come() || one.is_whole) with_left.push_back(one.device);
    only_gpus = only_gpus && (!one.can_come() || one.device->kind == DeviceKind::gpu);
  }
  if (!only_gpus) {
    own_matrix_ = topology::make_matrix(layout.inventory(), with_left.size() <= kFew ? with_left : can_come);
    matrix_ = &own_matrix_;
  }
  for (const Device* device : matrix_->devices) candidates_.push_back(of_device.at(device));
  kinds_ = kinds_of(matrix_->devices);
  speeds_ = speeds_for(layout.inventory(), *matrix_, request.link);
  all_are_gpus_ = only_gpus;
}

const ExactSearch* Search::exact() const {
  if (candidates_.size() > kFew) return nullptr;
  if (!exact_) {
    Positions all(candidates_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    exact_.emplace(exact_search_of(all));
  }
  return &*exact_;
}

const topology::RingTable* Search::rings() const {
  if (candidates_.size() > kFew || request_.count < 2) return nullptr;
  if (const topology::RingTable* prepared = all_are_gpus_ ? layout_.rings(request_.link) : nullptr) return prepared;
  if (!own_rings_) own_rings_.emplace(speeds_, static_cast<size_t>(request_.count));
  return &*own_rings_;
}

std::vector<Positions> Search::families(const Positions& available) const {
  if (mixes_models()) return {available};
  std::map<size_t, Positions> by_model;
  for (const size_t i : available) by_model[kinds_[i].model].push_back(i);
  std::vector<Positions> families;
  for (auto& [_, members] : by_model) families.push_back(std::move(members));
  return families;
}

BestSets Search::best_sets_of(int count, const Positions& available) const {
  BestSets best;
  for (const Positions& family : families(available)) {
    if (family.size() < static_cast<size_t>(count)) continue;
    if (const ExactSearch* all = exact())
      all->add_best(wanted(count, mask_of(family)), count < 2 ? nullptr : rings(), best);
    else if (family.size() <= kFew)
      search_few(family, count, best);
    else if (static_cast<size_t>(count) <= kFew)
      search_pools(family, count, best);
    else
      search_grown(family, count, best);
  }
  keep_best(best.sets);
  return best;
}

bool Search::has_set_of(int count, const Positions& available) const {
  const auto is_enough = [count](const Positions& family) { return family.size() >= static_cast<size_t>(count); };
  const std::vector<Positions> all = families(available);
  if (!wanted(count, 0).must_be_linked) return std::ranges::any_of(all, is_enough);
  return std::ranges::any_of(all, is_enough) && !best_sets_of(count, available).sets.empty();
}

ExactSearch::Wanted Search::wanted(int count, Mask among) const {
  return {.among = among,
          .count = count,
          .share = request_.share,
          .must_be_linked = count > 1 && request_.link != LinkNeed::any};
}

topology::Speeds Search::speeds_among(const Positions& members) const {
  topology::Speeds some;
  for (const size_t i : members) {
    some.emplace_back();
    for (const size_t j : members) some.back().push_back(speeds_[i][j]);
  }
  return some;
}

/// Of the links that count among devices that stay free.
topology::Speeds Search::free_speeds_among(const Positions& members) const {
  topology::Speeds speeds(members.size(), std::vector<double>(members.size(), 0));
  for (size_t i = 0; i < members.size(); ++i)
    for (size_t j = 0; j < members.size(); ++j) {
      const auto& pair = matrix_->pairs[members[i]][members[j]];
      const bool counts = request_.any_model || kinds_[members[i]].model == kinds_[members[j]].model;
      if (counts && pair.speed) speeds[i][j] = pair.speed->gbps;
    }
  return speeds;
}

ExactSearch Search::exact_search_of(const Positions& members) const {
  std::vector<const Device*> devices;
  for (const size_t i : members) devices.push_back(&device(i));
  const std::vector<size_t> classes = speed_classes_of(layout_.inventory(), devices);
  std::vector<size_t> models, nodes, roots;
  std::vector<ExactSearch::Traits> traits;
  for (size_t i = 0; i < members.size(); ++i) {
    const Kind& kind = kinds_[members[i]];
    const Candidate& one = candidate(members[i]);
    traits.push_back({.model = renumber(models, kind.model),
                      .speed_class = classes[i],
                      .numa_node = renumber(nodes, kind.numa_node),
                      .pcie_root = renumber(roots, kind.pcie_root),
                      .is_cpu = devices[i]->kind == DeviceKind::cpu,
                      .is_whole = one.is_whole,
                      .room = one.room});
  }
  return {traits, free_speeds_among(members)};
}

/// For a matrix with too many devices, when these are few enough.
void Search::search_few(const Positions& family, int count, BestSets& best) const {
  std::optional<topology::RingTable> rings;
  if (count > 1) rings.emplace(speeds_among(family), static_cast<size_t>(count));
  const size_t before = best.sets.size();
  exact_search_of(family).add_best(wanted(count, (Mask{1} << family.size()) - 1), rings ? &*rings : nullptr, best);
  for (size_t i = before; i < best.sets.size(); ++i)
    for (size_t& member : best.sets[i].members) member = family[member];
}

Positions Search::nearest(size_t seed, const Positions& family, size_t count) const {
  const Kind& centre = kinds_[seed];
  std::vector<std::tuple<bool, double, bool, bool, bool, size_t>> by_distance;
  for (const size_t i : family) {
    const Kind& kind = kinds_[i];
    by_distance.emplace_back(i != seed, -speeds_[seed][i], kind.model != centre.model,
                             kind.numa_node != centre.numa_node, kind.pcie_root != centre.pcie_root, i);
  }
  std::ranges::sort(by_distance);
  Positions near;
  for (size_t n = 0; n < count; ++n) near.push_back(std::get<5>(by_distance[n]));
  std::ranges::sort(near);
  return near;
}

void Search::search_pools(const Positions& family, int count, BestSets& best) const {
  best.exhaustive = false;
  std::set<Positions> pools;
  for (const size_t seed : family) {
    if (pools.size() == kMostPools) break;
    const Positions pool = nearest(seed, family, kFew);
    if (pools.insert(pool).second) search_few(pool, count, best);
  }
}

void Search::search_grown(const Positions& family, int count, BestSets& best) const {
  best.exhaustive = false;
  std::set<Positions> tried;
  for (const size_t seed : family) {
    if (tried.size() == kMostPools) break;
    const Positions members = nearest(seed, family, static_cast<size_t>(count));
    if (!tried.insert(members).second) continue;
    ++best.considered;
    const auto tree = topology::best_tree(speeds_among(members));
    if (tree || request_.link == LinkNeed::any) best.sets.push_back({members, score_by_tree(members, tree)});
  }
}

/// Without the remainder and the classes of speed, which are not compared then.
Score Search::score_by_tree(const Positions& members, const std::optional<topology::Bottleneck>& tree) const {
  Score score{.ring_gbps = tree ? tree->gbps : 0};
  std::set<size_t> models, nodes, roots;
  for (const size_t i : members) {
    score.cpus += device(i).kind == DeviceKind::cpu ? 1 : 0;
    score.opened += candidate(i).is_whole ? 1 : 0;
    models.insert(kinds_[i].model);
    nodes.insert(kinds_[i].numa_node);
    roots.insert(kinds_[i].pcie_root);
  }
  score.models = static_cast<int>(models.size());
  score.numa_nodes = static_cast<int>(nodes.size());
  score.pcie_roots = static_cast<int>(roots.size());
  return score;
}

std::optional<topology::Ring> Search::ring(const Positions& members) const {
  if (members.size() < 2 || members.size() > kFew) return std::nullopt;
  if (const topology::RingTable* all = rings()) return all->ring(mask_of(members));
  auto ring = topology::RingTable(speeds_among(members)).ring((Mask{1} << members.size()) - 1);
  if (!ring) return std::nullopt;
  for (size_t& device : ring->order) device = members[device];
  ring->bottleneck.a = members[ring->bottleneck.a];
  ring->bottleneck.b = members[ring->bottleneck.b];
  return ring;
}

Positions Search::left(const Positions& members) const {
  Positions left;
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (candidate(i).is_whole && !std::ranges::binary_search(members, i)) left.push_back(i);
  return left;
}

std::optional<Search::Group> Search::best_pair(const Positions& devices) const {
  return best_group(devices, &Remainder::best_pair);
}

std::optional<Search::Group> Search::best_four(const Positions& devices) const {
  return best_group(devices, &Remainder::best_four);
}

std::optional<Search::Group> Search::best_group(const Positions& devices, BestGroup best) const {
  if (devices.size() > kFew) return std::nullopt;
  if (const ExactSearch* all = exact()) {
    const auto group = (all->remainder().*best)(mask_of(devices));
    return group ? std::optional(Group{positions_of(group->devices), group->gbps}) : std::nullopt;
  }
  const auto group = (Remainder(free_speeds_among(devices)).*best)((Mask{1} << devices.size()) - 1);
  if (!group) return std::nullopt;
  Group named{positions_of(group->devices), group->gbps};
  for (size_t& member : named.members) member = devices[member];
  return named;
}

}  // namespace remuda::place

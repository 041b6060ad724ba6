#include "place/choice.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "place/rates.h"

namespace remuda::place {
namespace {

using Positions = std::vector<size_t>;
using Mask = Board::Mask;

constexpr size_t kOptions = 4;       // the best set and the runners-up that an explanation names
constexpr double kSameSpeed = 0.05;  // rates that differ by less belong to one class
constexpr size_t kMostPools = 64;
constexpr size_t kMostConsidered = Request::kMostDevices;

/// Devices with one key make one set when unlike devices may not be mixed.
std::string model_key(const Device& device) {
  return device.vendor + '\n' + device.model + '\n' + to_string(device.kind) + '\n' + device.profile.value_or("");
}

std::string numa_key(const Device& device) {
  if (device.numa_node.has_value()) return std::to_string(device.numa_node.value());
  std::string key = "cores";
  if (device.cores.has_value())
    for (const int core : device.cores.value()) key += ' ' + std::to_string(core);
  return key;
}

std::string root_key(const Device& device) { return device.pcie_root.value_or(""); }

/// Members with equal keys, as masks over `members`.
template <typename Key>
std::vector<Mask> grouped(const Positions& members, Key key) {
  std::map<std::string_view, Mask> groups;
  for (size_t i = 0; i < members.size(); ++i) groups[key(members[i])] |= Mask{1} << i;
  std::vector<Mask> masks;
  for (const auto& [_, mask] : groups) masks.push_back(mask);
  return masks;
}

/// Classes of rates: each begins at the slowest device that is not within kSameSpeed of the class before.
std::vector<Mask> speed_classes(const Inventory& inventory, const std::vector<const Device*>& devices) {
  const std::vector<double> rates = rates_of(inventory, devices).values;
  Positions order(devices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(rates[i], i); });
  std::vector<Mask> classes;
  double slowest = 0;
  for (const size_t i : order) {
    if (classes.empty() || rates[i] > slowest * (1 + kSameSpeed)) {
      classes.push_back(0);
      slowest = rates[i];
    }
    classes.back() |= Mask{1} << i;
  }
  return classes;
}

Mask mask_of(const Positions& members, const Positions& board) {
  Mask mask = 0;
  for (size_t i = 0; i < board.size(); ++i)
    if (std::ranges::binary_search(members, board[i])) mask |= Mask{1} << i;
  return mask;
}

Positions positions_of(Mask mask, const Positions& board) {
  Positions members;
  for (size_t i = 0; i < board.size(); ++i)
    if (mask >> i & 1) members.push_back(board[i]);
  return members;
}

Positions everything(size_t count) {
  Positions all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

void keep_best(Choice& choice) {
  auto& options = choice.options;
  std::ranges::sort(options, [](const Option& a, const Option& b) {
    return is_better(a.standing, b.standing) || (!is_better(b.standing, a.standing) && a.members < b.members);
  });
  const auto same = [](const Option& a, const Option& b) { return a.members == b.members; };
  options.erase(std::unique(options.begin(), options.end(), same), options.end());
  if (options.size() > kOptions) options.resize(kOptions);
}

}  // namespace

Chooser::Chooser(const Layout& layout, const Request& request, const std::vector<Fit>& fits)
    : layout_(layout), request_(request), matrix_(&layout.matrix()) {
  const auto& all = layout.inventory().devices;
  const auto fit_of = [&](const Device& device) -> const Fit& {
    return fits[static_cast<size_t>(&device - all.data())];
  };
  std::vector<const Device*> can_come, with_left;
  bool only_gpus = !layout.matrix().devices.empty();
  for (const Device& device : all) {
    const Fit& fit = fit_of(device);
    if (fit.can_come() && can_come.size() < kMostConsidered) can_come.push_back(&device);
    if (fit.can_come() || fit.whole) with_left.push_back(&device);
    only_gpus = only_gpus && (!fit.can_come() || device.kind == DeviceKind::gpu);
  }
  if (!only_gpus) {
    own_matrix_ = topology::make_matrix(layout.inventory(),
                                        with_left.size() <= topology::RingTable::kMaxDevices ? with_left : can_come);
    matrix_ = &own_matrix_;
  }
  for (const Device* device : matrix_->devices) {
    fits_.push_back(&fit_of(*device));
    keys_.push_back({model_key(*device), numa_key(*device), root_key(*device)});
  }
  speeds_ = speeds_for(layout.inventory(), *matrix_, request.link);
  if (request.count < 2 || fits_.size() > topology::RingTable::kMaxDevices) return;
  if (only_gpus) rings_ = layout.rings(request.link);
  if (!rings_) rings_ = &own_rings_.emplace(speeds_, static_cast<size_t>(request.count));
}

std::vector<Positions> Chooser::families(const Positions& available) const {
  if (mixes_models()) return {available};
  std::map<std::string_view, Positions> by_model;
  for (const size_t i : available) by_model[keys_[i].model].push_back(i);
  std::vector<Positions> families;
  for (auto& [_, members] : by_model) families.push_back(std::move(members));
  return families;
}

Choice Chooser::choose(int count, const Positions& available) const {
  Choice choice;
  for (const Positions& family : families(available)) {
    if (family.size() < static_cast<size_t>(count)) continue;
    if (fits_.size() <= topology::RingTable::kMaxDevices)
      search_board(everything(fits_.size()), family, count, choice);
    else if (family.size() <= topology::RingTable::kMaxDevices)
      search_board(family, family, count, choice);
    else if (static_cast<size_t>(count) <= topology::RingTable::kMaxDevices)
      search_pools(family, count, choice);
    else
      search_grown(family, count, choice);
  }
  keep_best(choice);
  return choice;
}

topology::Speeds Chooser::speeds_among(const Positions& members, const topology::Speeds& speeds) const {
  topology::Speeds some;
  for (const size_t i : members) {
    some.emplace_back();
    for (const size_t j : members) some.back().push_back(speeds[i][j]);
  }
  return some;
}

Board Chooser::board(const Positions& members) const {
  std::vector<const Device*> devices;
  Board board{.speeds = speeds_among(members, speeds_), .left_speeds = speeds_among(members, matrix().speeds())};
  for (size_t i = 0; i < members.size(); ++i) {
    devices.push_back(matrix().devices[members[i]]);
    if (devices[i]->kind == DeviceKind::cpu) board.cpus |= Mask{1} << i;
    if (fit(members[i]).whole) board.whole |= Mask{1} << i;
    board.room.push_back(fit(members[i]).room);
  }
  board.models = grouped(members, [this](size_t i) { return std::string_view(keys_[i].model); });
  board.numa_nodes = grouped(members, [this](size_t i) { return std::string_view(keys_[i].numa); });
  board.pcie_roots = grouped(members, [this](size_t i) { return std::string_view(keys_[i].root); });
  board.speed_classes = speed_classes(layout_.inventory(), devices);
  if (request_.any_model) return board;
  for (size_t i = 0; i < members.size(); ++i)
    for (size_t j = 0; j < members.size(); ++j)
      if (keys_[members[i]].model != keys_[members[j]].model) board.left_speeds[i][j] = 0;
  return board;
}

void Chooser::search_board(const Positions& members, const Positions& family, int count, Choice& choice) const {
  const Board on = board(members);
  std::optional<topology::RingTable> own;
  const topology::RingTable* rings = count < 2 ? nullptr : rings_;
  if (count > 1 && !rings) rings = &own.emplace(on.speeds, static_cast<size_t>(count));
  const Wish wish{.candidates = mask_of(family, members),
                  .count = count,
                  .share = request_.share,
                  .must_be_linked = count > 1 && request_.link != LinkNeed::any};
  Search found;
  search(on, rings, wish, kOptions, found);
  choice.considered += found.considered;
  for (const Found& one : found.best) choice.options.push_back({positions_of(one.set, members), one.standing});
}

Positions Chooser::nearest(size_t seed, const Positions& family, size_t count) const {
  const Keys& centre = keys_[seed];
  std::vector<std::tuple<bool, double, bool, bool, bool, size_t>> by_distance;
  for (const size_t i : family) {
    const Keys& keys = keys_[i];
    by_distance.emplace_back(i != seed, -speeds_[seed][i], keys.model != centre.model, keys.numa != centre.numa,
                             keys.root != centre.root, i);
  }
  std::ranges::sort(by_distance);
  Positions near;
  for (size_t n = 0; n < count; ++n) near.push_back(std::get<5>(by_distance[n]));
  std::ranges::sort(near);
  return near;
}

void Chooser::search_pools(const Positions& family, int count, Choice& choice) const {
  choice.exhaustive = false;
  std::set<Positions> pools;
  for (const size_t seed : family) {
    if (pools.size() == kMostPools) break;
    const Positions pool = nearest(seed, family, topology::RingTable::kMaxDevices);
    if (pools.insert(pool).second) search_board(pool, pool, count, choice);
  }
}

void Chooser::search_grown(const Positions& family, int count, Choice& choice) const {
  choice.exhaustive = false;
  std::set<Positions> tried;
  for (const size_t seed : family) {
    if (tried.size() == kMostPools) break;
    const Positions members = nearest(seed, family, static_cast<size_t>(count));
    if (!tried.insert(members).second) continue;
    ++choice.considered;
    std::set<std::string_view> models, nodes, roots;
    Standing standing;
    for (const size_t i : members) {
      standing.cpus += matrix().devices[i]->kind == DeviceKind::cpu;
      standing.opened += fit(i).whole;
      models.insert(keys_[i].model);
      nodes.insert(keys_[i].numa);
      roots.insert(keys_[i].root);
    }
    const auto tree = topology::best_tree(speeds_among(members, speeds_));
    standing.ring_gbps = tree ? tree->gbps : 0;
    standing.models = static_cast<int>(models.size());
    standing.numa_nodes = static_cast<int>(nodes.size());
    standing.pcie_roots = static_cast<int>(roots.size());
    if (tree || request_.link == LinkNeed::any) choice.options.push_back({members, standing});
  }
}

std::optional<topology::Ring> Chooser::ring(const Positions& members) const {
  if (members.size() < 2 || members.size() > topology::RingTable::kMaxDevices) return std::nullopt;
  if (rings_) return rings_->ring(mask_of(members, everything(fits_.size())));
  auto ring = topology::RingTable(speeds_among(members, speeds_)).ring((Mask{1} << members.size()) - 1);
  if (!ring) return std::nullopt;
  for (size_t& device : ring->order) device = members[device];
  ring->bottleneck.a = members[ring->bottleneck.a];
  ring->bottleneck.b = members[ring->bottleneck.b];
  return ring;
}

Positions Chooser::left(const Positions& members) const {
  Positions left;
  for (size_t i = 0; i < fits_.size(); ++i)
    if (fit(i).whole && !std::ranges::binary_search(members, i)) left.push_back(i);
  return left;
}

std::optional<Chooser::Best> Chooser::best_pair(const Positions& devices) const {
  if (devices.size() > topology::RingTable::kMaxDevices) return std::nullopt;
  const auto best = Left(board(devices).left_speeds).pair((Mask{1} << devices.size()) - 1);
  return best ? std::optional(Best{positions_of(best->devices, devices), best->gbps}) : std::nullopt;
}

std::optional<Chooser::Best> Chooser::best_four(const Positions& devices) const {
  if (devices.size() > topology::RingTable::kMaxDevices) return std::nullopt;
  const auto best = Left(board(devices).left_speeds).four((Mask{1} << devices.size()) - 1);
  return best ? std::optional(Best{positions_of(best->devices, devices), best->gbps}) : std::nullopt;
}

}  // namespace remuda::place

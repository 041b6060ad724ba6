#include "place/explain.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "place/rates.h"

namespace remuda::place {
namespace {

using Positions = std::vector<size_t>;

class Explainer {
 public:
  explicit Explainer(const Search& search) : search_(search) {}

  Explanation explain(const BestSets& best) const {
    const Positions& members = best.sets.front().members;
    Explanation out{.devices = labels(members), .ring = ring(members), .links = links(members)};
    places(members, out);
    const Positions left = search_.left(members);
    out.left = labels(left);
    out.left_pair = set(search_.best_pair(left));
    out.left_four = set(search_.best_four(left));
    for (size_t i = 1; i < best.sets.size(); ++i)
      out.runners_up.push_back({labels(best.sets[i].members), lost(best.sets[i], best.sets.front())});
    out.considered = best.considered;
    out.exhaustive = best.exhaustive;
    return out;
  }

 private:
  const Device& device(size_t position) const { return search_.device(position); }
  std::string label(size_t position) const { return device(position).label(); }

  std::vector<std::string> labels(const Positions& members) const {
    std::vector<std::string> labels;
    for (const size_t i : members) labels.push_back(label(i));
    return labels;
  }

  std::optional<Explanation::Ring> ring(const Positions& members) const {
    const auto ring = search_.ring(members);
    if (!ring) return std::nullopt;
    const auto& [gbps, a, b] = ring->bottleneck;
    const topology::Matrix::Pair& pair = search_.matrix().pairs[a][b];
    return Explanation::Ring{gbps, label(a), label(b), pair.label, pair.speed ? pair.speed->reason : ""};
  }

  std::vector<Explanation::Pair> links(const Positions& members) const {
    std::vector<Explanation::Pair> links;
    if (members.size() > topology::RingTable::kMaxDevices) return links;
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = i + 1; j < members.size(); ++j) {
        const topology::Matrix::Pair& pair = search_.matrix().pairs[members[i]][members[j]];
        links.push_back({label(members[i]), label(members[j]), pair.label});
        if (!pair.speed) continue;
        links.back().gbps = pair.speed->gbps;
        links.back().measured = pair.speed->measured;
      }
    return links;
  }

  void places(const Positions& members, Explanation& out) const {
    std::set<int> nodes;
    std::set<std::string> roots;
    for (const size_t i : members) {
      if (device(i).numa_node.has_value()) nodes.insert(device(i).numa_node.value());
      if (device(i).pcie_root.has_value()) roots.insert(device(i).pcie_root.value());
    }
    out.numa_nodes.assign(nodes.begin(), nodes.end());
    out.pcie_roots.assign(roots.begin(), roots.end());
  }

  std::optional<Explanation::Set> set(const std::optional<Search::Group>& best) const {
    if (!best) return std::nullopt;
    return Explanation::Set{labels(best->members), best->gbps};
  }

  std::string ring_text(const ScoredSet& one) const {
    const auto ring = this->ring(one.members);
    return ring ? fmt::format("{:.4g} GB/s ({}, {} to {})", ring->gbps, ring->label, ring->a, ring->b)
                : fmt::format("{:.4g} GB/s", one.score.ring_gbps);
  }

  /// The criterion that decided between the two, by the order of Score's fields.
  std::string lost(const ScoredSet& loser, const ScoredSet& winner) const {
    const Score &l = loser.score, &w = winner.score;
    if (l.cpus != w.cpus) return fmt::format("{} CPU devices in it against {}", l.cpus, w.cpus);
    if (l.ring_gbps == 0 && w.ring_gbps > 0) return "no ring of known links, against one of " + ring_text(winner);
    if (l.ring_gbps != w.ring_gbps)
      return fmt::format("a slower ring: {} against {}", ring_text(loser), ring_text(winner));
    if (l.models != w.models) return fmt::format("{} models against {}", l.models, w.models);
    if (l.speed_classes != w.speed_classes)
      return fmt::format("devices of {} speeds against {}", l.speed_classes, w.speed_classes);
    if (l.numa_nodes != w.numa_nodes) return fmt::format("{} NUMA nodes against {}", l.numa_nodes, w.numa_nodes);
    if (l.pcie_roots != w.pcie_roots) return fmt::format("{} PCIe roots against {}", l.pcie_roots, w.pcie_roots);
    if (l.opened != w.opened) return fmt::format("takes {} devices that are free whole against {}", l.opened, w.opened);
    if (l.spare != w.spare) return "fits less tightly";
    if (l.remainder != w.remainder) return "it would leave less: " + left_text(loser) + " against " + left_text(winner);
    return "as good; the first in the machine's order is taken";
  }

  std::string left_text(const ScoredSet& one) const {
    const Positions left = search_.left(one.members);
    const auto pair = search_.best_pair(left), four = search_.best_four(left);
    if (!pair) return "no linked pair";
    std::string text = fmt::format("a pair at {:.4g} GB/s", pair->gbps);
    if (four) text += fmt::format(", four at {:.4g}", four->gbps);
    return text + fmt::format(", links worth {:.2f}", static_cast<double>(one.score.remainder) / 1e6);
  }

  const Search& search_;
};

/// Whether the set has unlike devices, so that each should get a different part of the work.
bool is_unlike(const Score& score) { return score.models > 1 || score.speed_classes > 1; }

/// Whether devices that are free were not looked at together, as they are of several models.
bool keeps_models_apart(const Request& request, const std::vector<Candidate>& candidates) {
  if (request.any_model || request.count < 2 || request.is_static()) return false;
  std::set<std::pair<std::string, std::string>> models;
  for (const Candidate& one : candidates)
    if (one.state == Candidate::State::free) models.insert({one.device->vendor, one.device->model});
  return models.size() > 1;
}

void add_notes(const Request& request, const std::vector<const Device*>& devices, const BestSets& best,
               Explanation& out) {
  if (!best.exhaustive)
    out.notes.emplace_back(
        request.count > static_cast<int>(topology::RingTable::kMaxDevices)
            ? "more than 16 devices are wanted: sets were grown from each device, and the best tree stands for the ring"
            : "more than 16 devices suit: only sets among the 16 that stand nearest to each device were looked at");
  if (!request.any_model && devices.size() > 1 &&
      std::ranges::any_of(devices, [](const Device* device) { return device->model.empty(); }))
    out.notes.emplace_back("the devices' models are not recorded; they are taken for alike");
  if (request.memory_bytes > 0)
    for (const Device* device : devices)
      if (!device->status.memory_used_bytes.has_value())
        out.notes.push_back(fmt::format("how much memory of {} is in use is not known ({})", device->label(),
                                        device->status.memory_used_bytes.missing().detail));
}

}  // namespace

std::vector<Explanation::Rejected> rejected(const std::vector<Candidate>& candidates) {
  std::vector<Explanation::Rejected> out;
  for (const Candidate& one : candidates)
    if (one.state != Candidate::State::free && one.state != Candidate::State::not_asked)
      out.push_back({one.device->label(), one.reason});
  return out;
}

Placement explain(const Inventory& inventory, const Request& request, const std::vector<Candidate>& candidates,
                  const Search& search, const BestSets& best) {
  Placement placement{.explanation = Explainer(search).explain(best)};
  const ScoredSet& chosen = best.sets.front();
  std::vector<const Device*> devices;
  for (const size_t i : chosen.members) devices.push_back(&search.device(i));
  for (const Device* device : devices) placement.devices.push_back(device->id);
  if (is_unlike(chosen.score)) {
    const Rates rates = rates_of(inventory, devices);
    placement.shares = shares_of(rates);
    placement.explanation.shares_basis = rates.basis;
  }
  placement.explanation.rejected = rejected(candidates);
  placement.explanation.one_model = keeps_models_apart(request, candidates);
  add_notes(request, devices, best, placement.explanation);
  return placement;
}

}  // namespace remuda::place

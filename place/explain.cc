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
  explicit Explainer(const Chooser& chooser) : chooser_(chooser) {}

  Explanation explain(const Choice& choice) const {
    const Positions& members = choice.options.front().members;
    Explanation out{.devices = labels(members), .ring = ring(members), .links = links(members)};
    places(members, out);
    const Positions left = chooser_.left(members);
    out.left = labels(left);
    out.left_pair = set(chooser_.best_pair(left));
    out.left_four = set(chooser_.best_four(left));
    for (size_t i = 1; i < choice.options.size(); ++i)
      out.runners_up.push_back({labels(choice.options[i].members), lost(choice.options[i], choice.options.front())});
    out.considered = choice.considered;
    out.exhaustive = choice.exhaustive;
    return out;
  }

 private:
  const Device& device(size_t position) const { return *chooser_.matrix().devices[position]; }
  std::string label(size_t position) const { return device(position).label(); }

  std::vector<std::string> labels(const Positions& members) const {
    std::vector<std::string> labels;
    for (const size_t i : members) labels.push_back(label(i));
    return labels;
  }

  std::optional<Explanation::Ring> ring(const Positions& members) const {
    const auto ring = chooser_.ring(members);
    if (!ring) return std::nullopt;
    const auto& [gbps, a, b] = ring->bottleneck;
    const topology::Matrix::Pair& pair = chooser_.matrix().pairs[a][b];
    return Explanation::Ring{gbps, label(a), label(b), pair.label, pair.speed ? pair.speed->reason : ""};
  }

  std::vector<Explanation::Pair> links(const Positions& members) const {
    std::vector<Explanation::Pair> links;
    if (members.size() > topology::RingTable::kMaxDevices) return links;
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = i + 1; j < members.size(); ++j) {
        const topology::Matrix::Pair& pair = chooser_.matrix().pairs[members[i]][members[j]];
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

  std::optional<Explanation::Set> set(const std::optional<Chooser::Best>& best) const {
    if (!best) return std::nullopt;
    return Explanation::Set{labels(best->members), best->gbps};
  }

  std::string ring_words(const Option& option) const {
    if (option.standing.ring_gbps == 0) return "unknown";
    const auto ring = this->ring(option.members);
    return ring ? fmt::format("{:.4g} GB/s ({}, {} to {})", ring->gbps, ring->label, ring->a, ring->b)
                : fmt::format("{:.4g} GB/s", option.standing.ring_gbps);
  }

  /// What decided between the two, by the order of Standing's fields.
  std::string lost(const Option& loser, const Option& winner) const {
    const Standing &l = loser.standing, &w = winner.standing;
    if (l.cpus != w.cpus) return fmt::format("{} CPU devices in it against {}", l.cpus, w.cpus);
    if (l.ring_gbps != w.ring_gbps)
      return fmt::format("a slower ring: {} against {}", ring_words(loser), ring_words(winner));
    if (l.models != w.models) return fmt::format("{} models against {}", l.models, w.models);
    if (l.speeds != w.speeds) return fmt::format("devices of {} speeds against {}", l.speeds, w.speeds);
    if (l.numa_nodes != w.numa_nodes) return fmt::format("{} NUMA nodes against {}", l.numa_nodes, w.numa_nodes);
    if (l.pcie_roots != w.pcie_roots) return fmt::format("{} PCIe roots against {}", l.pcie_roots, w.pcie_roots);
    if (l.opened != w.opened) return fmt::format("takes {} devices that are free whole against {}", l.opened, w.opened);
    if (l.spare != w.spare) return "fits less tightly";
    if (l.left != w.left) return "it would leave less: " + left_words(loser) + " against " + left_words(winner);
    return "as good; the first in the machine's order is taken";
  }

  std::string left_words(const Option& option) const {
    const Positions left = chooser_.left(option.members);
    const auto pair = chooser_.best_pair(left), four = chooser_.best_four(left);
    if (!pair) return "no linked pair";
    std::string text = fmt::format("a pair at {:.4g} GB/s", pair->gbps);
    if (four) text += fmt::format(", four at {:.4g}", four->gbps);
    return text + fmt::format(", links worth {:.2f}", static_cast<double>(option.standing.left) / 1e6);
  }

  const Chooser& chooser_;
};

/// Whether unlike devices stand in the set, so that each should get its part of the work.
bool is_unlike(const Standing& standing) { return standing.models > 1 || standing.speeds > 1; }

void add_notes(const Request& request, const std::vector<const Device*>& devices, const Choice& choice,
               Explanation& out) {
  if (!choice.exhaustive)
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

std::vector<Explanation::Rejected> rejected(const Layout& layout, const std::vector<Fit>& fits) {
  std::vector<Explanation::Rejected> out;
  for (size_t i = 0; i < fits.size(); ++i)
    if (fits[i].state != Fit::State::free && fits[i].state != Fit::State::not_asked)
      out.push_back({layout.inventory().devices[i].label(), fits[i].reason});
  return out;
}

Placement explain(const Layout& layout, const Request& request, const std::vector<Fit>& fits, const Chooser& chooser,
                  const Choice& choice) {
  Placement placement{.explanation = Explainer(chooser).explain(choice)};
  const Option& best = choice.options.front();
  std::vector<const Device*> devices;
  for (const size_t i : best.members) devices.push_back(chooser.matrix().devices[i]);
  for (const Device* device : devices) placement.devices.push_back(device->id);
  if (is_unlike(best.standing)) {
    const Rates rates = rates_of(layout.inventory(), devices);
    placement.shares = shares_of(rates);
    placement.explanation.shares_basis = rates.basis;
  }
  placement.explanation.rejected = rejected(layout, fits);
  add_notes(request, devices, choice, placement.explanation);
  return placement;
}

}  // namespace remuda::place

#include "probe/amd/cards.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "base/number.h"

namespace remuda::probe::amd {
namespace {

uint64_t unique_id(const KfdNode& node) { return find(node.properties, "unique_id").value_or(0); }

bool is_of(const Card& card, const KfdNode& node, const std::string& pci) {
  if (pci.empty() || card.pci.empty()) return false;
  const auto without_function = [](const std::string& address) { return address.substr(0, address.rfind('.')); };
  const uint64_t id = unique_id(node);
  return card.pci == pci ||
         (id != 0 && id == unique_id(*card.nodes.front()) && without_function(card.pci) == without_function(pci));
}

template <typename T>
void fill(Reading<T>& reading, const std::optional<T>& value, const char* key) {
  if (reading.has_value()) return;
  if (value)
    reading = *value;
  else if (!reading.was_read())
    reading = Missing{MissingReason::unsupported, fmt::format("the driver's node reports no {}", key)};
}

template <typename T, typename Member>
std::optional<T> sum(const Card& card, Member member) {
  int64_t sum = 0;
  for (const KfdNode* node : card.nodes) {
    const auto part = std::invoke(member, *node);
    if (!part || *part > std::numeric_limits<T>::max() - sum) return std::nullopt;
    sum += *part;
  }
  return static_cast<T>(sum);
}

std::optional<int> device_file(const KfdNode& node) {
  const auto minor = find(node.properties, "drm_render_minor", std::numeric_limits<int>::max());
  return minor.value_or(0) > 0 ? std::optional(static_cast<int>(*minor)) : std::nullopt;
}

/// max_bandwidth is that of all links of a pair together, min_bandwidth that of one link.
std::optional<int> links_in(const KfdLink& told) {
  constexpr uint64_t kMost = 64;
  if (told.min_mbps == 0 || told.max_mbps == 0 || told.max_mbps % told.min_mbps != 0) return std::nullopt;
  const uint64_t links = told.max_mbps / told.min_mbps;
  return links <= kMost ? std::optional(static_cast<int>(links)) : std::nullopt;
}

Link make_link(const KfdLink& told, const Place& a, const Place& b) {
  constexpr double kGigabyte = 1000;
  const bool same_card = a.card == b.card;
  Link link{a.id, b.id};
  if (same_card)
    link.path = Path::psb;
  else if (told.is_pcie() && (a.is_part || b.is_part))
    link.path = Path::pcie;
  if (told.is_xgmi()) link.fabric = Fabric::xgmi;
  if (told.is_pcie()) link.fabric = Fabric::none;
  if (told.weight) link.weight = static_cast<int>(*told.weight);
  if (told.max_mbps > 0) link.max_gbps = static_cast<double>(told.max_mbps) / kGigabyte;
  if (const auto links = links_in(told); links && told.is_xgmi() && !same_card) link.fabric_links = *links;
  return link;
}

}  // namespace

std::vector<Card> cards_of(const Kfd& kfd) {
  std::vector<Card> cards;
  for (const KfdNode& node : kfd.nodes) {
    if (!node.is_gpu()) continue;
    const std::string pci = node.pci().value_or("");
    const auto card = std::ranges::find_if(cards, [&](const Card& known) { return is_of(known, node, pci); });
    if (card != cards.end())
      card->nodes.push_back(&node);
    else
      cards.push_back({pci.empty() ? node_id(node) : pci, pci, {&node}});
  }
  return cards;
}

std::string node_id(const KfdNode& node) { return fmt::format("kfd:{}", node.number); }

void read_card(const Card& card, Device& device) {
  const KfdNode& first = *card.nodes.front();
  fill(device.architecture, first.target(), "gfx_target_version");
  fill(device.minor, device_file(first), "drm_render_minor");
  fill(device.multiprocessors, sum<int>(card, &KfdNode::multiprocessors), "simd_count");
  fill(device.memory_bytes, sum<int64_t>(card, &KfdNode::memory_bytes), "memory of its own");
}

std::string uuid_text(uint64_t unique_id) { return fmt::format("GPU-{:016x}", unique_id); }

std::optional<uint64_t> parse_unique_id(std::string_view text) {
  const auto id = parse_number<uint64_t>(text, 16);
  return id == 0 ? std::nullopt : id;
}

uint64_t unique_id_of(const Card& card) {
  const uint64_t id = unique_id(*card.nodes.front());
  const bool one = std::ranges::all_of(card.nodes, [id](const KfdNode* node) { return unique_id(*node) == id; });
  return one ? id : 0;
}

std::optional<int> nearest_numa_node(const Kfd& kfd, const KfdNode& gpu) {
  std::optional<std::pair<uint64_t, int>> nearest;  // weight, position
  int position = 0;
  for (const KfdNode& cpu : kfd.nodes) {
    if (!cpu.is_cpu()) continue;
    for (const KfdLink& link : gpu.links)
      if (link.to == cpu.number && (!nearest || link.weight.value_or(UINT64_MAX) < nearest->first))
        nearest = {link.weight.value_or(UINT64_MAX), position};
    ++position;
  }
  return nearest ? std::optional(nearest->second) : std::nullopt;
}

std::vector<Link> links_of(const Kfd& kfd, const std::map<int, Place>& places) {
  std::vector<Link> links;
  std::set<std::pair<int, int>> known;
  for (const KfdNode& from : kfd.nodes) {
    const auto a = places.find(from.number);
    if (a == places.end()) continue;
    for (const KfdLink& told : from.links) {
      const auto b = places.find(told.to);
      if (b == places.end() || a == b || !known.insert(std::minmax(from.number, told.to)).second) continue;
      links.push_back(make_link(told, a->second, b->second));
    }
  }
  return links;
}

}  // namespace remuda::probe::amd

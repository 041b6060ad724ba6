#include "place/left.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>

namespace remuda::place {
namespace {

using Mask = Left::Mask;

constexpr Mask bit(size_t device) { return Mask{1} << device; }

size_t first_of(Mask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

struct Members {
  std::array<size_t, topology::RingTable::kMaxDevices> at{};
  size_t count = 0;

  explicit Members(Mask mask) {
    for (; mask != 0; mask &= mask - 1) at[count++] = first_of(mask);
  }
};

/// Of the second fastest links of a set's devices.
class FourLargest {
 public:
  void add(double value) {
    for (double& kept : largest_)
      if (value > kept) std::swap(value, kept);
  }
  /// No ring of four is faster: each device on it has two such links.
  double fourth() const { return largest_.back(); }

 private:
  std::array<double, 4> largest_{};
};

}  // namespace

Left::Left(const topology::Speeds& speeds) : speeds_(speeds) {
  for (size_t i = 0; i < speeds.size(); ++i) {
    std::map<double, Mask, std::greater<>> peers;
    for (size_t j = 0; j < speeds.size(); ++j)
      if (j != i && speeds[i][j] > 0) peers[speeds[i][j]] |= bit(j);
    reaches_.emplace_back();
    for (const auto& [gbps, mask] : peers) reaches_.back().push_back({gbps, mask});
    fastest_.push_back(peers.empty() ? 0 : peers.begin()->first);
  }
  const Mask all = bit(speeds.size()) - 1;
  if (const auto best = pair(all)) pair_ = best->gbps;
  if (const auto best = four(all)) four_ = best->gbps;
}

Left::Links Left::links(size_t device, Mask free) const {
  Links links;
  for (const Reach& reach : reaches_[device]) {
    const Mask peers = reach.peers & free;
    if (peers == 0) continue;
    const bool is_first = links.first == 0;
    if (is_first) links.first = reach.gbps;
    if (is_first && (peers & (peers - 1)) == 0) continue;
    links.second = reach.gbps;
    break;
  }
  return links;
}

double Left::ring_of_four(size_t a, size_t b, size_t c, size_t d) const {
  const auto& s = speeds_;
  const double ab_cd = std::min(s[a][b], s[c][d]), ac_bd = std::min(s[a][c], s[b][d]),
               ad_bc = std::min(s[a][d], s[b][c]);
  return std::max({std::min(ab_cd, ac_bd), std::min(ab_cd, ad_bc), std::min(ac_bd, ad_bc)});
}

std::optional<Left::Best> Left::pair(Mask free) const {
  Best best;
  for (Mask rest = free; rest != 0; rest &= rest - 1) {
    const size_t i = first_of(rest);
    const auto fastest = std::ranges::find_if(reaches_[i], [&](const Reach& r) { return (r.peers & free) != 0; });
    if (fastest != reaches_[i].end() && fastest->gbps > best.gbps)
      best = {bit(i) | bit(first_of(fastest->peers & free)), fastest->gbps};
  }
  return best.devices == 0 ? std::nullopt : std::optional(best);
}

std::optional<Left::Best> Left::four(Mask free) const {
  FourLargest seconds;
  for (Mask rest = free; rest != 0; rest &= rest - 1) seconds.add(links(first_of(rest), free).second);
  return four(free, seconds.fourth());
}

std::optional<Left::Best> Left::four(Mask free, double most) const {
  if (most == 0) return std::nullopt;
  const Members m(free);
  Best best;
  for (size_t a = 0; a < m.count; ++a)
    for (size_t b = a + 1; b < m.count; ++b)
      for (size_t c = b + 1; c < m.count; ++c)
        for (size_t d = c + 1; d < m.count; ++d) {
          const double gbps = ring_of_four(m.at[a], m.at[b], m.at[c], m.at[d]);
          if (gbps <= best.gbps) continue;
          best = {bit(m.at[a]) | bit(m.at[b]) | bit(m.at[c]) | bit(m.at[d]), gbps};
          if (gbps == most) return best;
        }
  return best.devices == 0 ? std::nullopt : std::optional(best);
}

double Left::most_worth(Mask free) const {
  double sum = 0;
  for (Mask rest = free; rest != 0; rest &= rest - 1) sum += fastest_[first_of(rest)];
  return 1 + (four_ > 0 ? 1 : 0) + sum / 2 / pair_;
}

double Left::worth(Mask free) const { return worth_above(-1, free); }

double Left::worth_above(double enough, Mask free) const {
  if (pair_ == 0) return 0;
  if (const double most = most_worth(free); most <= enough) return most;
  double sum = 0, fastest = 0;
  FourLargest seconds;
  for (Mask rest = free; rest != 0; rest &= rest - 1) {
    const Links of_one = links(first_of(rest), free);
    sum += of_one.first;
    fastest = std::max(fastest, of_one.first);
    seconds.add(of_one.second);
  }
  const double without_four = (fastest + sum / 2) / pair_, most = seconds.fourth();
  if (four_ == 0 || without_four + most / four_ <= enough) return without_four;
  const auto best = four(free, most);
  return without_four + (best ? best->gbps / four_ : 0);
}

}  // namespace remuda::place

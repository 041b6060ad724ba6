#include "place/remainder.h"

#include <algorithm>
#include <bit>

namespace remuda::place {
namespace {

using Mask = Remainder::Mask;
using topology::ByteLanes;

constexpr Mask bit(size_t device) { return Mask{1} << device; }

size_t first_of(Mask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

/// The fastest first, equal ones in their former order. `ranks` are those of the groups.
std::vector<Remainder::Group> sorted(const std::vector<Remainder::Group>& groups, const std::vector<uint8_t>& ranks) {
  std::array<size_t, 256> end{};  // for each rank: one after its last position
  for (const uint8_t rank : ranks) ++end[rank];
  for (size_t rank = end.size() - 1, before = 0; rank < end.size(); --rank) before = end[rank] += before;
  std::vector<Remainder::Group> out(groups.size());
  for (size_t i = groups.size(); i-- > 0;) out[--end[ranks[i]]] = groups[i];
  return out;
}

}  // namespace

Remainder::Remainder(const topology::Speeds& speeds) {
  rank_links(speeds);
  list_pairs(speeds.size());
  list_fours(speeds.size());
  fill_tables(speeds.size());
}

void Remainder::rank_links(const topology::Speeds& speeds) {
  std::vector<double>& known = gbps_by_rank_;
  known = {0};
  for (size_t i = 0; i < speeds.size(); ++i) known.insert(known.end(), speeds[i].begin(), speeds[i].begin() + i);
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (size_t i = 0; i < speeds.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const auto rank = static_cast<uint8_t>(std::ranges::lower_bound(known, speeds[i][j]) - known.begin());
      ranks_[i].set(j, rank);
      ranks_[j].set(i, rank);
    }
}

void Remainder::list_pairs(size_t count) {
  std::vector<Group> pairs;
  std::vector<uint8_t> ranks;
  for (size_t a = 0; a < count; ++a)
    for (size_t b = a + 1; b < count; ++b)
      if (const uint8_t rank = ranks_[a][b]; rank > 0) {
        pairs.push_back({bit(a) | bit(b), gbps_by_rank_[rank]});
        ranks.push_back(rank);
      }
  pairs_ = sorted(pairs, ranks);
  pair_gbps_ = pairs_.empty() ? 0 : pairs_.front().gbps;
}

void Remainder::list_fours(size_t count) {
  constexpr size_t kMostFours = 1820;
  std::vector<Group> fours;
  std::vector<uint8_t> ranks;
  fours.reserve(kMostFours);
  ranks.reserve(kMostFours);
  const auto& r = ranks_;
  for (size_t a = 0; a < count; ++a)
    for (size_t b = a + 1; b < count; ++b)
      for (size_t c = b + 1; c < count; ++c)
        for (size_t d = c + 1; d < count; ++d) {
          // A ring of four consists of two of the three ways to split them into pairs.
          const uint8_t ab_cd = std::min(r[a][b], r[c][d]), ac_bd = std::min(r[a][c], r[b][d]),
                        ad_bc = std::min(r[a][d], r[b][c]);
          const uint8_t rank = std::max({std::min(ab_cd, ac_bd), std::min(ab_cd, ad_bc), std::min(ac_bd, ad_bc)});
          if (rank == 0) continue;
          fours.push_back({bit(a) | bit(b) | bit(c) | bit(d), gbps_by_rank_[rank]});
          ranks.push_back(rank);
        }
  fours_ = sorted(fours, ranks);
  four_gbps_ = fours_.empty() ? 0 : fours_.front().gbps;
}

void Remainder::fill_tables(size_t count) {
  for (size_t half = 0; half < fastest_.size(); ++half)
    for (Mask mask = 1; mask < bit(kHalfBits); ++mask) {
      const size_t device = half * kHalfBits + first_of(mask);
      if (device >= count) continue;
      const Mask others = mask & (mask - 1);
      fastest_[half][mask] = max(fastest_[half][others], ranks_[device]);
    }
  const Mask all = bit(count) - 1;
  const ByteLanes fastest = fastest_to(all);
  for (size_t half = 0; half < fastest_.size(); ++half)
    for (Mask mask = 1; mask < bit(kHalfBits); ++mask) {
      const size_t device = half * kHalfBits + first_of(mask);
      most_gbps_[half][mask] = most_gbps_[half][mask & (mask - 1)] + gbps_by_rank_[fastest[device]];
    }
}

std::optional<Remainder::Group> Remainder::first_within(Mask free, const std::vector<Group>& groups) {
  const auto found = std::ranges::find_if(groups, [free](const Group& group) { return (group.devices & ~free) == 0; });
  return found == groups.end() ? std::nullopt : std::optional(*found);
}

double Remainder::worth_above(double enough, Mask free) const {
  if (pair_gbps_ == 0) return 0;
  const double four_at_most = four_gbps_ > 0 ? 1 : 0;
  const Mask low = free & (bit(kHalfBits) - 1), high = free >> kHalfBits;
  if (const double most = 1 + four_at_most + (most_gbps_[0][low] + most_gbps_[1][high]) / 2 / pair_gbps_;
      most <= enough)
    return most;
  const ByteLanes fastest = fastest_to(free);
  double sum = 0, best = 0;
  int linked = 0;
  for (Mask rest = free; rest != 0; rest &= rest - 1) {
    const double gbps = gbps_by_rank_[fastest[first_of(rest)]];
    sum += gbps;
    best = std::max(best, gbps);
    linked += gbps > 0 ? 1 : 0;
  }
  const double without_four = (best + sum / 2) / pair_gbps_;
  if (linked < 4 || without_four + four_at_most <= enough) return without_four;
  const auto four = best_four(free);
  return without_four + (four ? four->gbps / four_gbps_ : 0);
}

}  // namespace remuda::place

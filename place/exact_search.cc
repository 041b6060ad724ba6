#include "place/exact_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace remuda::place {
namespace {

using Mask = ExactSearch::Mask;

constexpr double kMillion = 1e6;

int64_t millionths(double value) { return std::llround(value * kMillion); }

/// The number of set bits in each group of sixteen, stored in that group. Used in place of four calls: no instruction
/// for it exists on all processors.
constexpr uint64_t counts_of(uint64_t bits) {
  bits -= bits >> 1 & 0x5555'5555'5555'5555;
  bits = (bits & 0x3333'3333'3333'3333) + (bits >> 2 & 0x3333'3333'3333'3333);
  bits = (bits + (bits >> 4)) & 0x0F0F'0F0F'0F0F'0F0F;
  return (bits + (bits >> 8)) & 0x00FF'00FF'00FF'00FF;
}

template <size_t Which>
int count_in(uint64_t counts) {
  return static_cast<int>(counts >> 16 * Which & 0xFF);
}

std::vector<size_t> members_of(Mask set) {
  std::vector<size_t> members;
  for (; set != 0; set &= set - 1) members.push_back(static_cast<size_t>(std::countr_zero(set)));
  return members;
}

}  // namespace

/// Tries the sets of one call, and keeps the best.
class Enumeration {
 public:
  Enumeration(const ExactSearch& of, const ExactSearch::Wanted& wanted, const topology::RingTable* rings)
      : of_(of),
        wanted_(wanted),
        rings_(rings),
        candidates_(members_of(wanted.among)),
        all_whole_((wanted.among & ~of.whole_) == 0) {}

  void run(BestSets& found) {
    extend(0, 0, static_cast<size_t>(wanted_.count));
    found.considered += considered_;
    for (const Kept& kept : best_) found.sets.push_back({members_of(kept.set), kept.score});
  }

 private:
  struct Kept {
    Mask set;
    Score score;
  };

  /// In lexicographic order, so that of equal sets the first in the inventory is found first.
  void extend(Mask set, size_t from, size_t missing) {
    if (missing == 0) return consider(set);
    for (size_t i = from; i + missing <= candidates_.size(); ++i)
      extend(set | Mask{1} << candidates_[i], i + 1, missing - 1);
  }

  /// Cheap criteria first: most sets lose by their ring, and their remainder is never computed.
  void consider(Mask set) {
    Score score{.cpus = of_.cpus_ == 0 ? 0 : std::popcount(set & of_.cpus_), .ring_gbps = ring_gbps(set)};
    if (wanted_.must_be_linked && score.ring_gbps == 0) return;
    ++considered_;
    const Kept* worst = best_.size() < kKeptSets ? nullptr : &best_.back();
    if (worst && score.cpus == worst->score.cpus && score.ring_gbps < worst->score.ring_gbps) return;
    const uint64_t counts = counts_of(of_.groups(set));
    score.models = count_in<3>(counts);
    score.speed_classes = count_in<2>(counts);
    score.numa_nodes = count_in<1>(counts);
    score.pcie_roots = count_in<0>(counts);
    score.opened = all_whole_ ? wanted_.count : std::popcount(set & of_.whole_);
    score.spare = wanted_.share < 1 ? millionths(spare(set)) : 0;
    const int order = worst ? compare_without_remainder(score, worst->score) : -1;
    if (order > 0) return;
    const double enough = order == 0 ? not_more_than(worst->score.remainder) : -1;
    const double left = of_.remainder_.worth_above(enough, of_.whole_ & ~set);
    if (left <= enough) return;
    score.remainder = millionths(left);
    keep({set, score});
  }

  /// Values up to this are at most `in_millionths` after rounding to millionths.
  static double not_more_than(int64_t in_millionths) {
    constexpr double kRoundedDown = 0.499;
    return (static_cast<double>(in_millionths) + kRoundedDown) / kMillion;
  }

  double ring_gbps(Mask set) const { return rings_ ? rings_->gbps(set) : std::numeric_limits<double>::infinity(); }

  double spare(Mask set) const {
    double sum = 0;
    for (; set != 0; set &= set - 1) sum += of_.room_[static_cast<size_t>(std::countr_zero(set))] - wanted_.share;
    return sum;
  }

  void keep(const Kept& kept) {
    const auto at = std::ranges::find_if(best_, [&](const Kept& other) { return is_better(kept.score, other.score); });
    best_.insert(at, kept);
    if (best_.size() > kKeptSets) best_.pop_back();
  }

  const ExactSearch& of_;
  const ExactSearch::Wanted& wanted_;
  const topology::RingTable* rings_;
  const std::vector<size_t> candidates_;
  const bool all_whole_;
  std::vector<Kept> best_;
  int64_t considered_ = 0;
};

ExactSearch::ExactSearch(const std::vector<Traits>& devices, const topology::Speeds& free_speeds)
    : remainder_(free_speeds) {
  std::array<Groups, topology::RingTable::kMaxDevices> of_each{};
  for (size_t i = 0; i < devices.size(); ++i) {
    const Traits& device = devices[i];
    if (device.is_cpu) cpus_ |= Mask{1} << i;
    if (device.is_whole) whole_ |= Mask{1} << i;
    room_.push_back(device.room);
    of_each[i] = Groups{1} << (48 + device.model) | Groups{1} << (32 + device.speed_class) |
                 Groups{1} << (16 + device.numa_node) | Groups{1} << device.pcie_root;
  }
  for (size_t half = 0; half < groups_.size(); ++half)
    for (Mask set = 1; set < groups_[half].size(); ++set)
      groups_[half][set] =
          groups_[half][set & (set - 1)] | of_each[8 * half + static_cast<size_t>(std::countr_zero(set))];
}

void ExactSearch::add_best(const Wanted& wanted, const topology::RingTable* rings, BestSets& found) const {
  Enumeration(*this, wanted, rings).run(found);
}

}  // namespace remuda::place

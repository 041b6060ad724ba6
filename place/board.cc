#include "place/board.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace remuda::place {
namespace {

using Mask = Board::Mask;

constexpr double kMillion = 1e6;

int64_t millionths(double value) { return std::llround(value * kMillion); }

int groups_met(const std::vector<Mask>& groups, Mask set) {
  return static_cast<int>(std::ranges::count_if(groups, [set](Mask group) { return (group & set) != 0; }));
}

class Searcher {
 public:
  Searcher(const Board& board, const topology::RingTable* rings, const Wish& wish, size_t keep, Search& result)
      : board_(board), rings_(rings), wish_(wish), keep_(keep), result_(result), left_(board.left_speeds) {
    all_whole_ = (wish.candidates & ~board.whole) == 0;
    for (Mask rest = wish.candidates; rest != 0; rest &= rest - 1)
      candidates_.push_back(static_cast<size_t>(std::countr_zero(rest)));
  }

  void run() { extend(0, 0, static_cast<size_t>(wish_.count)); }

 private:
  /// In lexicographic order, so that of equal sets the first in the inventory is met first.
  void extend(Mask set, size_t from, size_t missing) {
    if (missing == 0) return consider(set);
    for (size_t i = from; i + missing <= candidates_.size(); ++i)
      extend(set | Mask{1} << candidates_[i], i + 1, missing - 1);
  }

  void consider(Mask set) {
    Standing standing{.cpus = board_.cpus == 0 ? 0 : std::popcount(set & board_.cpus), .ring_gbps = ring_gbps(set)};
    if (wish_.must_be_linked && standing.ring_gbps == 0) return;
    ++result_.considered;
    const Found* worst = result_.best.size() < keep_ ? nullptr : &result_.best.back();
    if (worst && standing.cpus == worst->standing.cpus && standing.ring_gbps < worst->standing.ring_gbps) return;
    standing.models = groups_met(board_.models, set);
    standing.speeds = groups_met(board_.speed_classes, set);
    standing.numa_nodes = groups_met(board_.numa_nodes, set);
    standing.pcie_roots = groups_met(board_.pcie_roots, set);
    standing.opened = all_whole_ ? wish_.count : std::popcount(set & board_.whole);
    standing.spare = wish_.share < 1 ? millionths(spare(set)) : 0;
    if (worst && is_better_but_for_left(worst->standing, standing)) return;
    const bool must_win = worst && !is_better_but_for_left(standing, worst->standing);
    standing.left = left(set, must_win ? &worst->standing : nullptr);
    if (!worst || is_better(standing, worst->standing)) insert({set, standing});
  }

  double ring_gbps(Mask set) const { return rings_ ? rings_->gbps(set) : std::numeric_limits<double>::infinity(); }

  double spare(Mask set) const {
    double sum = 0;
    for (; set != 0; set &= set - 1) sum += board_.room[static_cast<size_t>(std::countr_zero(set))] - wish_.share;
    return sum;
  }

  int64_t left(Mask set, const Standing* to_beat) const {
    constexpr double kRoundedDown = 0.499;  // of a millionth: what is not above that much more counts as the same
    const double enough = to_beat ? (static_cast<double>(to_beat->left) + kRoundedDown) / kMillion : -1;
    return millionths(left_.worth_above(enough, board_.whole & ~set));
  }

  void insert(const Found& found) {
    auto& best = result_.best;
    const auto at =
        std::ranges::find_if(best, [&](const Found& other) { return is_better(found.standing, other.standing); });
    best.insert(at, found);
    if (best.size() > keep_) best.pop_back();
  }

  const Board& board_;
  const topology::RingTable* rings_;
  const Wish& wish_;
  const size_t keep_;
  Search& result_;
  const Left left_;
  std::vector<size_t> candidates_;
  bool all_whole_ = false;
};

}  // namespace

void search(const Board& board, const topology::RingTable* rings, const Wish& wish, size_t keep, Search& search) {
  Searcher(board, rings, wish, keep, search).run();
}

}  // namespace remuda::place

#include "workers/regroup.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::workers {
namespace {

bool is_gone(const RankFacts& rank) { return rank.has_failed() && !(rank.waits && !rank.exit); }
bool waits(const RankFacts& rank) { return rank.waits && !rank.exit; }
/// It hears who is left, or will.
bool can_go_on(const RankFacts& rank) { return waits(rank) || (rank.trained && !is_gone(rank)); }
bool is_at_work(const RankFacts& rank) { return !is_gone(rank) && !can_go_on(rank); }

/// No other ranks can go on from where this one has left them.
bool ends_the_run(const RankFacts& rank) {
  const bool never_began = is_gone(rank) && !rank.ready;
  return rank.done || never_began || (rank.error && rank.error->kind == ErrorKind::usage);
}

/// The rank that has waited for this one in vain, or null.
const RankFacts* who_waited_for(const RankFacts& silent, std::span<const RankFacts> ranks) {
  const auto found = std::ranges::find_if(
      ranks, [&](const RankFacts& rank) { return waits(rank) && rank.error->peer == silent.rank; });
  return found == ranks.end() ? nullptr : &*found;
}

/// All that are left wait for one that none of them is: the connections between them are cut. Those to leave out so
/// that no two remain of which one has lost the other.
std::vector<Failure> left_out(std::span<const RankFacts> ranks) {
  std::vector<Failure> out;
  const auto is_left = [&](int rank) {
    return std::ranges::find(ranks, rank, &RankFacts::rank) != ranks.end() &&
           std::ranges::find(out, rank, &Failure::rank) == out.end();
  };
  for (;;) {
    const RankFacts *most = nullptr, *witness = nullptr;
    std::ptrdiff_t votes = 1;
    for (const RankFacts& named : ranks) {
      if (!is_left(named.rank)) continue;
      const auto names_it = [&](const RankFacts& rank) {
        return rank.error && rank.error->peer == named.rank && is_left(rank.rank);
      };
      const std::ptrdiff_t count = std::ranges::count_if(ranks, names_it);
      if (count < votes) continue;
      votes = count;
      most = &named;
      witness = &*std::ranges::find_if(ranks, names_it);
    }
    if (!most) return out;
    out.push_back(blame(*most, fmt::format("lost its connection to rank {}, which goes on ({})", witness->rank,
                                           witness->error->message)));
  }
}

}  // namespace

bool is_well(std::span<const RankFacts> ranks) {
  if (!ranks.empty() && ranks.front().trained && !is_gone(ranks.front())) return true;
  return std::ranges::none_of(ranks, &RankFacts::has_failed);
}

Regrouping::Now wait_for_agreement(std::span<const RankFacts> ranks, int may_be_lost, double now_s, double agree_s) {
  if (is_well(ranks)) return Regrouping::Now::work;
  double first_s = now_s;
  for (const RankFacts& rank : ranks)
    if (rank.has_failed()) first_s = std::min(first_s, rank.failed_at_s);
  const bool fails = may_be_lost == 0 || std::ranges::any_of(ranks, ends_the_run) ||
                     std::ranges::all_of(ranks, is_gone) || now_s >= first_s + agree_s;
  return fails ? Regrouping::Now::fail : Regrouping::Now::wait;
}

Regrouping regroup(std::span<const RankFacts> ranks, int may_be_lost, double now_s, double notice_s, double report_s) {
  if (is_well(ranks)) return {};
  if (may_be_lost == 0 || std::ranges::any_of(ranks, ends_the_run)) return {Regrouping::Now::fail, {}};
  Regrouping regrouping{Regrouping::Now::meet, {}};
  // Where one is gone, those that it has left name each other, too, and are only slower to say so.
  const bool any_gone = std::ranges::any_of(ranks, is_gone);
  double first_s = now_s, last_s = 0;
  for (const RankFacts& rank : ranks) {
    if (!rank.has_failed()) continue;
    first_s = std::min(first_s, rank.failed_at_s);
    last_s = std::max(last_s, rank.failed_at_s);
  }
  for (const RankFacts& rank : ranks) {
    if (is_gone(rank)) regrouping.lost.push_back(blame(rank, cause_of(rank)));
    if (!is_at_work(rank)) continue;
    const RankFacts* const witness = who_waited_for(rank, ranks);
    const bool hangs = now_s >= first_s + notice_s || (witness && !any_gone && now_s >= last_s + report_s);
    if (!hangs) regrouping.now = Regrouping::Now::wait;
    regrouping.lost.push_back(
        witness ? blame_silent(rank, *witness)
                : blame(rank, fmt::format("did not notice for {:g} s that another was lost", notice_s)));
  }
  if (regrouping.lost.empty()) regrouping.lost = left_out(ranks);
  const size_t most = std::min(ranks.size() - 1, static_cast<size_t>(may_be_lost));
  const bool may_go_on = !regrouping.lost.empty() && regrouping.lost.size() <= most;
  if (regrouping.now == Regrouping::Now::meet && !may_go_on) regrouping.now = Regrouping::Now::fail;
  return regrouping;
}

}  // namespace remuda::workers

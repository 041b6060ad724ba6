#include "workers/regroup.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::workers {
namespace {

bool is_gone(const RankFacts& rank) { return rank.has_failed() && !(rank.waits && !rank.exit); }
bool waits(const RankFacts& rank) { return rank.waits && !rank.exit; }
bool is_at_work(const RankFacts& rank) { return !is_gone(rank) && !waits(rank); }

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

Failure lost(const RankFacts& rank, std::string cause) {
  return {rank.rank, rank.device, rank.error ? rank.error->kind : ErrorKind::failed, std::move(cause),
          rank.last_output};
}

}  // namespace

Regrouping regroup(std::span<const RankFacts> ranks, int may_be_lost, double now_s, double notice_s, double report_s) {
  if (std::ranges::all_of(ranks, is_at_work)) return {};
  if (std::ranges::any_of(ranks, ends_the_run)) return {Regrouping::Now::fail, {}};
  Regrouping regrouping{Regrouping::Now::meet, {}};
  // Where one is gone, those that it has left name each other, too, and are only slower to say so.
  const bool any_gone = std::ranges::any_of(ranks, is_gone);
  double first_s = now_s, last_s = 0;
  for (const RankFacts& rank : ranks) {
    if (is_at_work(rank)) continue;
    first_s = std::min(first_s, rank.failed_at_s);
    last_s = std::max(last_s, rank.failed_at_s);
  }
  for (const RankFacts& rank : ranks) {
    if (is_gone(rank)) regrouping.lost.push_back(lost(rank, cause_of(rank)));
    if (!is_at_work(rank)) continue;
    const RankFacts* const witness = who_waited_for(rank, ranks);
    const bool hangs = now_s >= first_s + notice_s || (witness && !any_gone && now_s >= last_s + report_s);
    if (!hangs) regrouping.now = Regrouping::Now::wait;
    regrouping.lost.push_back(
        lost(rank, witness ? fmt::format("went silent (rank {}: {})", witness->rank, witness->error->message)
                           : fmt::format("did not notice for {:g} s that another was lost", notice_s)));
  }
  const size_t most = std::min(ranks.size() - 1, static_cast<size_t>(may_be_lost));
  const bool may_go_on = !regrouping.lost.empty() && regrouping.lost.size() <= most;
  if (regrouping.now == Regrouping::Now::meet && !may_go_on) regrouping.now = Regrouping::Now::fail;
  return regrouping;
}

}  // namespace remuda::workers

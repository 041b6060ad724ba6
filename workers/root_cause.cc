#include "workers/root_cause.h"

#include <algorithm>
#include <fmt/format.h>

namespace remuda::workers {
namespace {

enum class Weight { none, lost_peer, own };

Weight weigh(const RankFacts& rank, bool stopping) {
  if (!rank.has_failed()) return Weight::none;
  if (rank.error && rank.error->kind != ErrorKind::lost_peer) return Weight::own;
  if (stopping) return Weight::none;
  if (rank.error) return Weight::lost_peer;
  return rank.signalled ? Weight::none : Weight::own;
}

/// Only one thing is known: `witness` lost a peer. The peer itself is the cause if it has reported nothing.
Failure blame_peer(std::span<const RankFacts> ranks, const RankFacts& witness) {
  for (const auto& rank : ranks)
    if (rank.rank == witness.error->peer && !rank.error) return blame_silent(rank, witness);
  return blame(witness, witness.error->message);
}

}  // namespace

std::string cause_of(const RankFacts& rank) {
  if (rank.error) return rank.error->message;
  if (rank.exit->ok()) return "ended before its work was done";
  return to_string(*rank.exit);
}

Failure blame(const RankFacts& rank, std::string cause) {
  return {rank.rank, rank.device, rank.error ? rank.error->kind : ErrorKind::failed, std::move(cause),
          rank.last_output};
}

Failure blame_silent(const RankFacts& rank, const RankFacts& witness) {
  return blame(rank, fmt::format("went silent (rank {}: {})", witness.rank, witness.error->message));
}

std::optional<Failure> root_cause(std::span<const RankFacts> ranks, bool stopping) {
  if (std::ranges::any_of(ranks, &RankFacts::reported)) return std::nullopt;
  if (!ranks.empty() && ranks.front().trained && weigh(ranks.front(), stopping) != Weight::none) ranks = ranks.first(1);
  const RankFacts* worst = nullptr;
  Weight heaviest = Weight::none;
  for (const auto& rank : ranks) {
    const Weight weight = weigh(rank, stopping);
    if (weight == Weight::none || weight < heaviest) continue;
    if (weight > heaviest || rank.failed_at_s < worst->failed_at_s) worst = &rank, heaviest = weight;
  }
  if (!worst) return std::nullopt;
  if (heaviest == Weight::lost_peer) return blame_peer(ranks, *worst);
  return blame(*worst, cause_of(*worst));
}

}  // namespace remuda::workers

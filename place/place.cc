#include "place/place.h"

#include <algorithm>

#include "place/explain.h"
#include "place/host.h"
#include "place/refuse.h"

namespace remuda::place {

namespace {

bool is_free(const Candidate& one) { return one.state == Candidate::State::free; }

/// A refusal for want of devices, where the host has too little left, too.
void add_host(const Refusal& host, Refusal& refusal) {
  refusal.sentence += "; " + host.sentence;
  refusal.blockers.insert(refusal.blockers.end(), host.blockers.begin(), host.blockers.end());
  if (refusal.earliest_s && host.earliest_s)
    refusal.earliest_s = std::max(*refusal.earliest_s, *host.earliest_s);
  else
    refusal.earliest_s.reset();
}

}  // namespace

Result<Answer> place(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  const Inventory& inventory = layout.inventory();
  const std::vector<Held> all = with_held_cores(inventory, held);
  REMUDA_ASSIGN(const std::vector<Candidate> candidates, find_candidates(inventory, request, all));
  const HostRoom host(inventory, held);
  if (auto never = host.never(request)) return std::move(*never);
  const Search search(layout, request, candidates);
  const BestSets best = search.best_sets(request.count, is_free);
  auto not_now = host.not_now(request);
  if (best.sets.empty()) {
    Refusal refusal = refuse(inventory, request, candidates, search, all);
    if (not_now && !refusal.never) add_host(*not_now, refusal);
    return refusal;
  }
  if (not_now) return std::move(*not_now);
  Placement placement = explain(inventory, request, candidates, search, best);
  placement.cores = host.choose_cores(request, placement.devices);
  return placement;
}

Result<bool> fits(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  const std::vector<Held> all = with_held_cores(layout.inventory(), held);
  REMUDA_ASSIGN(const std::vector<Candidate> candidates, find_candidates(layout.inventory(), request, all));
  if (wants_host(request) && !HostRoom(layout.inventory(), held).fits(request)) return false;
  return Search(layout, request, candidates).has_set(request.count, is_free);
}

}  // namespace remuda::place

#include "place/place.h"

#include "place/explain.h"
#include "place/refuse.h"

namespace remuda::place {

namespace {

bool is_free(const Candidate& one) { return one.state == Candidate::State::free; }

}  // namespace

Result<Answer> place(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  REMUDA_ASSIGN(const std::vector<Candidate> candidates, find_candidates(layout.inventory(), request, held));
  const Search search(layout, request, candidates);
  const BestSets best = search.best_sets(request.count, is_free);
  if (best.sets.empty()) return refuse(layout.inventory(), request, candidates, search, held);
  return explain(layout.inventory(), request, candidates, search, best);
}

Result<bool> fits(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  REMUDA_ASSIGN(const std::vector<Candidate> candidates, find_candidates(layout.inventory(), request, held));
  return Search(layout, request, candidates).has_set(request.count, is_free);
}

}  // namespace remuda::place

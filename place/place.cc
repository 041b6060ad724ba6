#include "place/place.h"

#include "place/explain.h"
#include "place/refuse.h"

namespace remuda::place {

Result<Answer> place(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  REMUDA_ASSIGN(const std::vector<Candidate> candidates, find_candidates(layout.inventory(), request, held));
  const Search search(layout, request, candidates);
  const BestSets best =
      search.best_sets(request.count, [](const Candidate& one) { return one.state == Candidate::State::free; });
  if (best.sets.empty()) return refuse(layout.inventory(), request, candidates, search, held);
  return explain(layout.inventory(), request, candidates, search, best);
}

}  // namespace remuda::place

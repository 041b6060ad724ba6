#include "place/place.h"

#include "place/explain.h"

namespace remuda::place {

Result<Answer> place(const Layout& layout, const Request& request, std::span<const Held> held) {
  REMUDA_TRY(check(request));
  REMUDA_ASSIGN(const std::vector<Fit> fits, fit_all(layout.inventory(), request, held));
  const Chooser chooser(layout, request, fits);
  const Choice choice =
      chooser.choose(request.count, [](const Device&, const Fit& fit) { return fit.state == Fit::State::free; });
  if (choice.options.empty()) return refuse(layout, request, fits, chooser, held);
  return explain(layout, request, fits, chooser, choice);
}

}  // namespace remuda::place

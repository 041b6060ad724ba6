#include "cli/jobs/run_detached.h"

#include <fmt/format.h>

namespace remuda {

Result<int> run_detached(const std::function<Result<int>(const Tell&)>& front) {
  REMUDA_ASSIGN(const Message first, detach(front));
  if (first.kind != Message::Kind::ended) {
    fmt::print("{}\n", first.job);
    return 0;
  }
  if (!first.text.empty()) fmt::print(stderr, "remuda: {}\n", first.text);
  return first.status;
}

}  // namespace remuda

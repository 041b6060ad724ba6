#include "cli/jobs/run_detached.h"

#include <fmt/format.h>
#include <unistd.h>

namespace remuda::cli {

Result<int> run_detached(const std::function<Result<int>(const run::Report&)>& front, bool is_array) {
  REMUDA_ASSIGN(const run::Message first, detach(front));
  if (first.kind != run::Message::Kind::ended) {
    fmt::print("{}\n", first.job);
    if (::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
      fmt::print(stderr, "remuda logs {}{} shows what it writes\n", is_array ? "" : "-f ", first.job);
    return 0;
  }
  if (!first.text.empty()) fmt::print(stderr, "remuda: {}\n", first.text);
  return first.status;
}

}  // namespace remuda::cli

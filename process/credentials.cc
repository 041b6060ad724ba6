#include "process/credentials.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/file.h"
#include "process/status.h"

namespace remuda::process {
namespace {

bool are_one(const std::vector<int>& ids) {
  return !ids.empty() && std::ranges::all_of(ids, [&](int id) { return id == ids.front(); });
}

}  // namespace

std::optional<Credentials> credentials_of(const ProcessId& process) {
  ProcessStatus status = parse_status(read_text(fmt::format("/proc/{}/status", process.pid)).value_or(""));
  if (!is_alive(process) || !are_one(status.users) || !are_one(status.groups)) return std::nullopt;
  return Credentials{status.users.front(), status.groups.front(), std::move(status.further_groups)};
}

}  // namespace remuda::process

#include "process/credentials.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::process {
namespace {

/// The numbers of a line of /proc/PID/status: "Uid:\t1000\t1000\t1000\t1000", "Groups:\t27 1000 ".
std::vector<int> numbers_of(const std::string& status, const std::string& key) {
  std::vector<int> numbers;
  for (const std::string& line : split(status, '\n')) {
    if (!line.starts_with(key + ":")) continue;
    std::string values = line.substr(key.size() + 1);
    std::ranges::replace(values, '\t', ' ');
    for (const std::string& value : split(values, ' '))
      if (const auto number = parse_number<int>(value)) numbers.push_back(*number);
  }
  return numbers;
}

bool are_one(const std::vector<int>& ids) {
  return !ids.empty() && std::ranges::all_of(ids, [&](int id) { return id == ids.front(); });
}

}  // namespace

std::optional<Credentials> credentials_of(const ProcessId& process) {
  const std::string status = read_text(fmt::format("/proc/{}/status", process.pid)).value_or("");
  const std::vector<int> uids = numbers_of(status, "Uid"), gids = numbers_of(status, "Gid");
  if (!is_alive(process) || !are_one(uids) || !are_one(gids)) return std::nullopt;
  return Credentials{uids.front(), gids.front(), numbers_of(status, "Groups")};
}

}  // namespace remuda::process

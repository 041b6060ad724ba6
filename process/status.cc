#include "process/status.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::process {
namespace {

/// Ids beyond the half of their range are negative, as everywhere here.
std::vector<int> parse_ids(const std::vector<std::string>& words) {
  std::vector<int> ids;
  for (const std::string& word : words)
    if (const auto id = parse_number<uint32_t>(word)) ids.push_back(static_cast<int>(*id));
  return ids;
}

std::vector<int> parse_four(const std::vector<std::string>& words) {
  constexpr size_t kIds = 4;
  std::vector<int> ids = parse_ids(words);
  return ids.size() == kIds && words.size() == kIds ? ids : std::vector<int>();
}

}  // namespace

ProcessStatus parse_status(const std::string& text) {
  ProcessStatus status;
  for (const std::string& line : split(text, '\n')) {
    const size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    const std::string_view key = std::string_view(line).substr(0, colon),
                           value = std::string_view(line).substr(colon + 2);
    if (key == "Name") status.name = printable(value);
    if (key == "Uid") status.users = parse_four(split(value, '\t'));
    if (key == "Gid") status.groups = parse_four(split(value, '\t'));
    if (key == "Groups") status.further_groups = parse_ids(split(value, ' '));
    if (key == "SigCgt") status.caught = std::strtoull(std::string(value).c_str(), nullptr, 16);
    if (key == "FDSize") status.descriptor_slots = parse_number<int64_t>(value).value_or(0);
  }
  return status;
}

bool handles(int pid, int signal) {
  const auto text = read_text(fmt::format("/proc/{}/status", pid));
  return text && signal > 0 && signal <= 64 && (parse_status(*text).caught >> (signal - 1) & 1) != 0;
}

std::optional<int> sole_user_of(int pid) {
  const auto text = read_text(fmt::format("/proc/{}/status", pid));
  const std::vector<int> users = text ? parse_status(*text).users : std::vector<int>();
  const bool is_one = !users.empty() && std::ranges::all_of(users, [&](int user) { return user == users[0]; });
  return is_one ? std::optional(users[0]) : std::nullopt;
}

}  // namespace remuda::process

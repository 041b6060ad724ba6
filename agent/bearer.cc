#include "agent/bearer.h"

#include <algorithm>
#include <sys/stat.h>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::agent {

/// The tree of version 2, and the one that systemd has for itself beside those of version 1: all others may be given to
/// users. What stands further down in a path its user may have named.
std::optional<int> slice_owner(std::string_view memberships) {
  constexpr std::string_view kSlice = ":/user.slice/user-", kEnd = ".slice";
  for (const std::string& line : split(memberships, '\n')) {
    const bool is_of_systemd = line.starts_with("0::/") || line.find(":name=systemd:/") != std::string::npos;
    const size_t at = line.find(kSlice);
    if (!is_of_systemd || at == std::string::npos || at != line.find(":/")) continue;
    std::string_view name = std::string_view(line).substr(at + kSlice.size());
    name = name.substr(0, name.find('/'));
    if (!name.ends_with(kEnd)) continue;
    const auto uid = parse_number<int>(name.substr(0, name.size() - kEnd.size()));
    if (uid && *uid >= 0) return uid;
  }
  return std::nullopt;
}

void Bearers::read() {
  struct stat info{};
  if (::stat(file_.c_str(), &info) != 0) info = {};
  const bool is_same = info.st_mtim.tv_sec == read_at_.tv_sec && info.st_mtim.tv_nsec == read_at_.tv_nsec;
  if (is_same) return;
  read_at_ = info.st_mtim;
  ranges_ = process::user_ranges(read_text(file_).value_or(""));
}

std::string Bearers::of(int uid, std::optional<int> slice, bool is_named) {
  if (uid == 0) return "0";
  if (slice) return std::to_string(*slice);
  if (is_named) return std::to_string(uid);
  read();
  const auto range = std::ranges::find_if(ranges_, [uid](const auto& one) { return one.has(uid); });
  return range == ranges_.end() ? std::to_string(uid) : range->owner;
}

}  // namespace remuda::agent

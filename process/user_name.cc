#include "process/user_name.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <grp.h>
#include <optional>
#include <pwd.h>
#include <set>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace remuda::process {

namespace {

/// Null where there is none, also where the databases cannot be asked, as `error` says; `buffer` has its texts.
const passwd* find_user(int uid, passwd& entry, std::vector<char>& buffer, int& error) {
  constexpr size_t kLargest = 1 << 20;
  passwd* found = nullptr;
  buffer.resize(1024);
  while ((error = ::getpwuid_r(static_cast<uid_t>(uid), &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kLargest)
    buffer.resize(buffer.size() * 2);
  return found;
}

const passwd* find_user(int uid, passwd& entry, std::vector<char>& buffer) {
  int error = 0;
  return find_user(uid, entry, buffer, error);
}

std::vector<std::string> names_of(const std::vector<gid_t>& ids) {
  constexpr size_t kMost = 256, kLargest = 1 << 16;
  std::set<std::string> names;
  for (const gid_t id : ids) {
    group entry{};
    group* found = nullptr;
    std::vector<char> buffer(kLargest);
    if (names.size() < kMost && ::getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found)
      names.insert(printable(found->gr_name));
  }
  return {names.begin(), names.end()};
}

constexpr size_t kLargestEntry = 1 << 16;

std::optional<int> user_id(const std::string& name) {
  if (const auto number = parse_number<int>(name)) return number;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLargestEntry);
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return std::nullopt;
  return static_cast<int>(entry.pw_uid);
}

/// The errors by which databases say that they do not have it (getpwnam(3)).
bool says_no(int error) { return error == 0 || error == ENOENT || error == ESRCH; }

}  // namespace

bool is_told(int uid) {
  passwd entry{};
  std::vector<char> buffer;
  int error = 0;
  return find_user(uid, entry, buffer, error) || says_no(error);
}

bool is_user(const std::string& name) {
  if (parse_number<uint32_t>(name)) return true;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLargestEntry);
  const int error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found || !says_no(error);
}

bool is_group(const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(kLargestEntry);
  const int error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found || !says_no(error);
}

std::vector<UserRange> user_ranges(std::string_view text) {
  std::vector<UserRange> ranges;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> parts = split(line, ':');  // owner:first:count
    if (parts.size() != 3) continue;
    const auto first = parse_number<int64_t>(parts[1]), count = parse_number<int64_t>(parts[2]);
    if (first && count) ranges.push_back({parts[0], *first, *count});
  }
  return ranges;
}

int owner_of(int uid, const std::string& file) {
  passwd entry{};
  std::vector<char> buffer;
  if (find_user(uid, entry, buffer)) return uid;
  const std::vector<UserRange> ranges = user_ranges(read_text(file).value_or(""));
  const auto range = std::ranges::find_if(ranges, [uid](const UserRange& one) { return one.has(uid); });
  if (range == ranges.end()) return uid;
  const auto owner = user_id(range->owner);
  return owner && *owner > 0 ? *owner : uid;
}

std::string user_name(int uid) {
  passwd entry{};
  std::vector<char> buffer;
  const passwd* found = find_user(uid, entry, buffer);
  return found ? printable(found->pw_name) : std::to_string(static_cast<uid_t>(uid));
}

std::vector<std::string> own_groups() {
  std::vector<gid_t> ids(65536);
  const int count = ::getgroups(static_cast<int>(ids.size()), ids.data());
  ids.resize(static_cast<size_t>(std::max(0, count)));
  ids.push_back(::getgid());
  return names_of(ids);
}

std::vector<std::string> groups_of(int uid) {
  passwd entry{};
  std::vector<char> buffer;
  const passwd* found = find_user(uid, entry, buffer);
  if (!found) return {};
  std::vector<gid_t> ids(65536);
  int count = static_cast<int>(ids.size());
  if (::getgrouplist(found->pw_name, found->pw_gid, ids.data(), &count) < 0) return {};
  ids.resize(static_cast<size_t>(count));
  return names_of(ids);
}

}  // namespace remuda::process

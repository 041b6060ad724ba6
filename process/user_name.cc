#include "process/user_name.h"

#include <algorithm>
#include <cerrno>
#include <grp.h>
#include <pwd.h>
#include <set>
#include <unistd.h>
#include <vector>

#include "base/text.h"

namespace remuda::process {

std::string user_name(int uid) {
  constexpr size_t kLargest = 1 << 20;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(1024);
  while (::getpwuid_r(static_cast<uid_t>(uid), &entry, buffer.data(), buffer.size(), &found) == ERANGE &&
         buffer.size() < kLargest)
    buffer.resize(buffer.size() * 2);
  return found ? printable(found->pw_name) : std::to_string(static_cast<uid_t>(uid));
}

std::vector<std::string> own_groups() {
  constexpr size_t kMost = 256, kLargest = 1 << 16;
  std::vector<gid_t> ids(65536);
  const int count = ::getgroups(static_cast<int>(ids.size()), ids.data());
  ids.resize(static_cast<size_t>(std::max(0, count)));
  ids.push_back(::getgid());
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

}  // namespace remuda::process

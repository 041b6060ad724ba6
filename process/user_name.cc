#include "process/user_name.h"

#include <cerrno>
#include <pwd.h>
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

}  // namespace remuda::process

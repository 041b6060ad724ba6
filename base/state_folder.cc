#include "base/state_folder.h"

#include <cerrno>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/env.h"

namespace remuda {
namespace {

constexpr mode_t kFolderMode = 0700;

}  // namespace

std::optional<std::string> state_folder() {
  const std::string state = env::get(env::state_home).value_or("");
  if (state.starts_with('/')) return state + "/remuda";
  const std::string home = env::get(env::home).value_or("");
  if (home.starts_with('/')) return home + "/.local/state/remuda";
  return std::nullopt;
}

Result<void> make_folder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), kFolderMode) != 0 && errno != EEXIST)
      return failed(fmt::format("cannot make the folder {}: {}", part, errno_text(errno)));
    if (end == std::string::npos) return {};
  }
}

}  // namespace remuda

#include "wire/place.h"

#include <sys/stat.h>

#include "base/env.h"

namespace remuda::wire {

std::optional<std::string> agent_socket(bool live, const std::optional<std::string>& named, const std::string& socket) {
  if (named && !named->empty()) return named;
  struct stat info{};
  const std::string mark = socket.substr(0, socket.rfind('/') + 1) + kInstalled;
  return live && ::stat(mark.c_str(), &info) == 0 ? std::optional(socket) : std::nullopt;
}

std::optional<std::string> agent_socket(bool live) { return agent_socket(live, env::get(env::agent), kSocket); }

}  // namespace remuda::wire

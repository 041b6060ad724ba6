#include "base/read_all.h"

#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace remuda {
namespace {

bool is_regular(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/// Waits until there is something to read, or the end; false when nothing came for `patience_s`.
bool await(int fd, double patience_s) {
  pollfd polled{fd, POLLIN, 0};
  const int timeout_ms = std::isinf(patience_s) ? -1 : static_cast<int>(patience_s * 1000);
  int ready;
  do ready = ::poll(&polled, 1, timeout_ms);
  while (ready < 0 && errno == EINTR);
  return ready != 0;
}

}  // namespace

Result<std::string> read_all(int fd, std::string_view name, size_t limit, double patience_s) {
  const auto refuse = [&](const std::string& why) { return usage_error(fmt::format("cannot read {}: {}", name, why)); };
  const bool regular = is_regular(fd);
  std::string text;
  char buffer[65536];
  for (;;) {
    if (!regular && !await(fd, patience_s))
      return refuse(
          fmt::format("nobody has written to it for {:g} s; it must be a file, or be written to", patience_s));
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return refuse(errno_text(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > limit) return refuse("it is larger than " + human_bytes(static_cast<double>(limit)));
  }
}

}  // namespace remuda

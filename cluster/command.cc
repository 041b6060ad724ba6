#include "cluster/command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/child.h"

namespace remuda::cluster {
namespace {

constexpr size_t kLongestOutput = 8 << 20;

/// Reads what there is. False at the end of the stream.
bool read_more(int fd, std::string& text) {
  char bytes[65536];
  for (ssize_t got; text.size() <= kLongestOutput;) {
    got = ::read(fd, bytes, sizeof bytes);
    if (got <= 0) return got != 0;
    text.append(bytes, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

Result<std::string> run_command(const std::vector<std::string>& argv, double limit_s) {
  REMUDA_ASSIGN(process::ChildProcess child, process::ChildProcess::spawn({.argv = argv, .folder = "/"}));
  const double end_s = monotonic_s() + limit_s;
  std::string text;
  for (bool is_open = true;;) {
    const auto exit = child.exit_state();
    if (is_open) is_open = read_more(child.output(), text);
    if (text.size() > kLongestOutput) return failed(fmt::format("{} prints too much", argv[0]));
    if (exit) return exit->ok() ? Result<std::string>(text) : failed(fmt::format("{} {}", argv[0], to_string(*exit)));
    const double left_s = end_s - monotonic_s();
    if (left_s <= 0) return failed(fmt::format("{} did not end within {:g} s", argv[0], limit_s));
    pollfd polled[] = {{child.pidfd(), POLLIN, 0}, {is_open ? child.output() : -1, POLLIN, 0}};
    ::poll(polled, 2, static_cast<int>(left_s * 1000) + 1);
  }
}

}  // namespace remuda::cluster

#include "cli/status_line.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

#include "base/characters.h"
#include "base/env.h"
#include "base/file.h"
#include "cli/terminal.h"

namespace remuda::cli {
namespace {

constexpr double kLineEvery_s = 5;
constexpr size_t kBarWidth = 20;
constexpr size_t kUsualWidth = 80;
constexpr auto kEraseLine = "\r\x1b[K";

}  // namespace

std::string bar_text(const std::string& status, double progress, size_t width) {
  if (progress < 0 || characters(status) + kBarWidth + 3 > width) return first_characters(status, width);
  const auto full = static_cast<size_t>(std::lround(std::min(progress, 1.0) * kBarWidth));
  return "[" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "] " + status;
}

StatusLine::Mode StatusLine::mode_of_stderr(bool quiet) {
  if (quiet) return Mode::quiet;
  const bool can_redraw = ::isatty(STDERR_FILENO) && env::get(env::term).value_or("dumb") != "dumb";
  return can_redraw ? Mode::bar : Mode::lines;
}

StatusLine::StatusLine(Mode mode, int fd, Clock& clock)
    : mode_(mode), fd_(fd), clock_(clock), next_line_s_(clock.now_s()) {}

StatusLine::~StatusLine() {
  if (!bar_.empty()) write(kEraseLine);
}

void StatusLine::print(const std::string& line) {
  if (mode_ == Mode::quiet) return;
  write(bar_.empty() ? line + "\n" : kEraseLine + line + "\n" + bar_);
}

void StatusLine::update(const std::string& status, double progress) {
  if (mode_ == Mode::bar) {
    bar_ = bar_text(status, progress, terminal_width(fd_).value_or(kUsualWidth) - 1);
    write(kEraseLine + bar_);
  }
  if (mode_ == Mode::lines && clock_.now_s() >= next_line_s_) {
    write(status + "\n");
    next_line_s_ = clock_.now_s() + kLineEvery_s;
  }
}

void StatusLine::write(const std::string& text) { (void)write_all(fd_, text, "progress"); }

}  // namespace remuda::cli

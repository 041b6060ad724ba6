#include "cli/status_line.h"

#include <algorithm>
#include <cmath>
#include <poll.h>
#include <unistd.h>

#include "base/characters.h"
#include "base/env.h"
#include "base/file.h"
#include "cli/terminal.h"

namespace remuda::cli {
namespace {

constexpr double kLineEvery_s = 5;
constexpr size_t kBarWidth = 20;
constexpr size_t kAroundBar = 3;  // "[", "]" and a space
constexpr size_t kIndent = 4;
constexpr size_t kUsualWidth = 80;
constexpr auto kEraseLine = "\r\x1b[K";

}  // namespace

std::string bar_text(const std::string& status, double progress, size_t width) {
  if (progress < 0 || characters(status) + kBarWidth + kAroundBar > width) return shortened(status, width);
  const auto full = static_cast<size_t>(std::lround(std::min(progress, 1.0) * kBarWidth));
  return "[" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "] " + status;
}

std::string folded(const std::string& text, size_t width) {
  if (characters(text) <= width || width <= 2 * kIndent) return text;
  const std::string first = first_characters(text, width + 1);
  const size_t space = first.rfind(' ');
  const bool breaks = space != std::string::npos && characters(first.substr(0, space)) > kIndent;
  const size_t end = breaks ? space : first_characters(text, width).size();
  const std::string rest = text.substr(breaks ? end + 1 : end);
  return text.substr(0, end) + "\n" + folded(std::string(kIndent, ' ') + rest, width);
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
  const std::string lines = (mode_ == Mode::bar ? folded(line, width()) : line) + "\n";
  write(bar_.empty() ? lines : kEraseLine + lines + bar_);
}

void StatusLine::update(const std::string& status, double progress) {
  if (mode_ == Mode::quiet || would_block()) return;
  if (mode_ == Mode::bar) {
    bar_ = bar_text(status, progress, width());
    write(kEraseLine + bar_);
  }
  if (mode_ == Mode::lines && clock_.now_s() >= next_line_s_) {
    write(status + "\n");
    next_line_s_ = clock_.now_s() + kLineEvery_s;
  }
}

size_t StatusLine::room() const { return mode_ == Mode::bar ? width() : std::string::npos; }

bool StatusLine::would_block() const {
  pollfd polled{fd_, POLLOUT, 0};
  return ::poll(&polled, 1, 0) == 0;
}

/// The last column stays empty: a terminal may begin a new line once it is written.
size_t StatusLine::width() const {
  const size_t columns = terminal_width(fd_).value_or(kUsualWidth);
  return columns - std::min<size_t>(columns, 1);
}

void StatusLine::write(const std::string& text) { (void)write_all(fd_, text, "progress"); }

}  // namespace remuda::cli

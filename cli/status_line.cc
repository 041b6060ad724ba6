#include "cli/status_line.h"

#include <algorithm>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"

namespace remuda {
namespace {

constexpr double kLineEvery_s = 5;
constexpr size_t kBarWidth = 20;
constexpr size_t kUsualWidth = 80;
constexpr auto kEraseLine = "\r\x1b[K";

size_t terminal_width(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// The first `width` characters of UTF-8 text.
std::string cut(const std::string& text, size_t width) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if (starts_character(text[end]) && width-- == 0) break;
  return text.substr(0, end);
}

size_t characters(const std::string& text) { return std::count_if(text.begin(), text.end(), starts_character); }

}  // namespace

std::string bar_text(const std::string& status, double progress, size_t width) {
  if (progress < 0 || characters(status) + kBarWidth + 3 > width) return cut(status, width);
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
    bar_ = bar_text(status, progress, terminal_width(fd_) - 1);
    write(kEraseLine + bar_);
  }
  if (mode_ == Mode::lines && clock_.now_s() >= next_line_s_) {
    write(status + "\n");
    next_line_s_ = clock_.now_s() + kLineEvery_s;
  }
}

void StatusLine::write(const std::string& text) { (void)write_all(fd_, text, "progress"); }

}  // namespace remuda

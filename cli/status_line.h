// StatusLine: progress on a terminal, as one line that is redrawn; elsewhere as a plain line from time to time.
#pragma once

#include <string>

#include "base/clock.h"

namespace remuda::cli {

class StatusLine {
 public:
  enum class Mode {
    quiet,  ///< nothing at all
    lines,  ///< not a terminal: the status at most every 5 seconds
    bar,    ///< a terminal: the status is the last line, redrawn when it changes
  };
  /// For stderr: bar if it is a terminal that can redraw (TERM is not dumb).
  static Mode mode_of_stderr(bool quiet);

  /// Writes to `fd`, which it does not own. One thread.
  StatusLine(Mode mode, int fd, Clock& clock);
  /// Removes the bar.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;

  /// A line that stays; on a terminal folded to its width.
  void print(const std::string& line);
  /// The current state, and how far the work has come (0 to 1; less than 0 where that is not defined). Dropped, without
  /// waiting, while the reader does not read: a pager, or a terminal stopped with Ctrl-S.
  void update(const std::string& status, double progress);
  /// Characters that update() has room for, without a bar; without limit where it is not on a terminal.
  size_t room() const;

 private:
  void write(const std::string& text);
  bool would_block() const;
  size_t width() const;
  const Mode mode_;
  const int fd_;
  Clock& clock_;
  std::string bar_;     ///< as shown on the terminal
  double next_line_s_;  ///< mode lines: when the status may be printed again
};

/// "[=====     ] status", cut to `width` characters; without the bar when that would not fit. Pure.
std::string bar_text(const std::string& status, double progress, size_t width);

/// The text in lines of at most `width` characters, broken at a space where there is one; all lines except the first
/// are indented. Without a line end after the last. Pure.
std::string folded(const std::string& text, size_t width);

}  // namespace remuda::cli

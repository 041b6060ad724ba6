// StatusLine: progress on a terminal, as one line drawn over and over; elsewhere as a plain line now and then.
#pragma once

#include <string>

#include "base/clock.h"

namespace remuda::cli {

class StatusLine {
 public:
  enum class Mode {
    quiet,  ///< nothing at all
    lines,  ///< not a terminal: the status at most every 5 seconds
    bar,    ///< a terminal: the status is the last line, drawn anew when it changes
  };
  /// For stderr: bar if it is a terminal that can redraw (TERM is not dumb).
  static Mode mode_of_stderr(bool quiet);

  /// Writes to `fd`, which it does not own. One thread.
  StatusLine(Mode mode, int fd, Clock& clock);
  /// Takes the bar away.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;

  /// A line that stays.
  void print(const std::string& line);
  /// What is going on now, and how far it has come (0 to 1; less than 0 where that has no meaning).
  void update(const std::string& status, double progress);

 private:
  void write(const std::string& text);
  const Mode mode_;
  const int fd_;
  Clock& clock_;
  std::string bar_;     ///< as it stands on the terminal
  double next_line_s_;  ///< mode lines: when the status may be printed again
};

/// "[=====>    ] status", cut to `width` characters; without the bar when that would not fit. Pure.
std::string bar_text(const std::string& status, double progress, size_t width);

}  // namespace remuda::cli

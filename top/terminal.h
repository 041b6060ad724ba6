// Terminal: the terminal of this process in the hands of ncurses: frames go out, keys come in. It is as it was before
// once this is gone, also where the process ends by a fault.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "top/cells.h"
#include "top/screen.h"

namespace remuda::top {

/// What the locale of the process can show; set it before.
Charset charset_of_locale();

/// One at a time, and one thread.
class Terminal {
 public:
  /// Takes the terminal of stdin and stdout. A usage error where they are none, or one that cannot move its cursor.
  static Result<std::unique_ptr<Terminal>> open(bool has_colours);
  virtual ~Terminal() = default;

  virtual Size size() const = 0;
  /// Dropped where the terminal takes nothing now: it was stopped with Ctrl-S, or the line is slow. False then.
  virtual bool draw(const Frame& frame) = 0;
  /// The next one that was pressed (keys.h); nothing where there is none.
  virtual std::optional<char32_t> next_key() = 0;
};

}  // namespace remuda::top

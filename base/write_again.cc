#include "base/write_again.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace remuda {

Result<void> write_again(const std::function<Result<void>()>& write, double pause_s,
                         const std::function<void(const Error& error, double pause_s)>& before_pause) {
  for (int tries = 1;; ++tries, pause_s *= 2) {
    Result<void> written = write();
    if (written || tries == kWriteTries || written.error().kind == ErrorKind::lost_peer) return written;
    before_pause(written.error(), pause_s);
    steady_clock().sleep_s(pause_s);
  }
}

std::string tries_again_text(const Error& error, double pause_s) {
  return fmt::format("{}; tries again in {:.1f} s", error.message, pause_s);
}

}  // namespace remuda

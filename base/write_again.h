// Writes that failed are tried again: a disk that is full, or a folder that is away, may be good a moment later.
#pragma once

#include <functional>

#include "base/result.h"

namespace remuda {

/// So often is a write tried in all. The pauses between are 1, 2 and 4 of the first, 3.5 s: what is in the way
/// for a moment goes meanwhile, and nobody waits long for a disk that stays full.
inline constexpr int kWriteTries = 4;
inline constexpr double kWritePause_s = 0.5;

/// Calls `write` until it succeeds, or has failed so often; returns its last error. `before_pause` is told the error
/// and the seconds until it is tried again. A rank that is lost does not come back, and is returned at once.
Result<void> write_again(const std::function<Result<void>()>& write, double pause_s,
                         const std::function<void(const Error& error, double pause_s)>& before_pause);

/// "cannot write FILE: No space left on device; tries again in 0.5 s".
std::string tries_again_text(const Error& error, double pause_s);

}  // namespace remuda

// demo_picture(): the recording that comes with remuda, where it begins to be played. For tests only.
#pragma once

#include <string>

#include "base/clock.h"
#include "snapshot/demo.h"
#include "snapshot/replay_source.h"
#include "top/picture.h"

namespace remuda::top {

/// Of recordings, as they begin; the same in each time zone.
inline Picture picture_of(std::vector<snapshot::Recording> recordings, Range range = Range::hour) {
  snapshot::ReplaySource source(std::move(recordings), steady_clock(), {.speed = 0});
  Picture picture = next_picture(source, range, {});
  picture.clock = "12:45:00";
  return picture;
}

inline Picture demo_picture(Range range = Range::hour) {
  std::vector<snapshot::Recording> recordings;
  recordings.push_back(snapshot::parse_recording(snapshot::demo_recording(), "demo").value());
  return picture_of(std::move(recordings), range);
}

}  // namespace remuda::top

#include "top/picture.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "snapshot/sentences.h"

namespace remuda::top {
namespace {

/// As many as the page asks for, so that both call the same devices idle.
constexpr int kPoints = 360;

std::string clock_at(double time_s) {
  const auto seconds = static_cast<std::time_t>(time_s);
  std::tm parts{};
  char text[16];
  if (!::localtime_r(&seconds, &parts)) return "";
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &parts)};
}

/// The number of the step of a history in which a time is. No step is shorter than five seconds: that is how the page
/// asks.
int64_t step_at(double time_s, Range range) {
  return static_cast<int64_t>(time_s / std::max(5.0, seconds_of(range) / kPoints));
}

std::vector<std::string> keys_of(const snapshot::Seen& seen) {
  std::vector<std::string> keys;
  for (const snapshot::Host& host : seen.hosts)
    for (const snapshot::View& view : host.devices) keys.push_back(view.key);
  return keys;
}

bool has_other_devices(const snapshot::Seen& a, const snapshot::Seen& b) { return keys_of(a) != keys_of(b); }

snapshot::Histories histories_of(snapshot::Source& source, const snapshot::Seen& seen, Range range) {
  snapshot::Histories histories;
  for (const snapshot::Host& host : seen.hosts)
    for (const snapshot::View& view : host.devices) {
      auto history = source.history({.host = host.name,
                                     .device = view.device.id,
                                     .measures = {"busy", "memory_used_bytes", "power_watts", "temperature_c"},
                                     .from_s = seen.time_s - seconds_of(range),
                                     .to_s = seen.time_s,
                                     .points = kPoints});
      if (history) histories[view.key] = std::move(*history);
    }
  return histories;
}

}  // namespace

double seconds_of(Range range) {
  switch (range) {
    case Range::quarter:
      return 900;
    case Range::hour:
      return 3600;
    case Range::six_hours:
      return 21600;
    case Range::day:
      return 86400;
    case Range::week:
      return 604800;
  }
  return 0;
}

Picture next_picture(snapshot::Source& source, Range range, const Picture& before) {
  const auto snapshot = source.snapshot();
  auto seen = snapshot ? snapshot::seen_in(*snapshot) : tl::unexpected(snapshot.error());
  Picture picture = before;
  if (!seen) {
    picture.trouble = seen.error().message;
    if (!before.seen) picture.seen = tl::unexpected(seen.error());
    return picture;
  }
  const bool has_more = !before.seen || before.range != range || has_other_devices(*before.seen, *seen) ||
                        step_at(before.seen->time_s, range) != step_at(seen->time_s, range);
  if (has_more) picture.histories = histories_of(source, *seen, range);
  picture.range = range;
  picture.clock = clock_at(seen->time_s);
  picture.old.clear();
  for (const snapshot::Host& host : seen->hosts)
    if (host.has_silent_agent) picture.old.push_back(agent_sentence(host, seen->time_s, clock_at(host.known_s)));
  picture.seen = std::move(seen);
  picture.trouble.clear();
  return picture;
}

}  // namespace remuda::top

#include "base/local_time.h"

#include <ctime>

namespace remuda {

std::string local_time_text(double at_s) {
  constexpr double kLatest = 253402300799;  // the year 9999
  if (!(at_s >= 0 && at_s <= kLatest)) return "an unknown time";
  const auto seconds = static_cast<std::time_t>(at_s);
  std::tm parts{};
  char text[64];
  if (!::localtime_r(&seconds, &parts)) return "an unknown time";
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M %Z", &parts);
  return {text, length};
}

}  // namespace remuda

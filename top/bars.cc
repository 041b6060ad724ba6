#include "top/bars.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace remuda::top {
namespace {

constexpr std::array<const char*, 8> kColumns{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 8> kAsciiColumns{"_", ".", "-", "~", "=", "+", "*", "#"};

std::optional<double> mean(const snapshot::Series& series, size_t first, size_t end) {
  double sum = 0;
  int known = 0;
  for (size_t i = first; i < end; ++i)
    if (series[i]) sum += *series[i], ++known;
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

}  // namespace

Cells bar(std::optional<double> part, size_t width, Charset charset, Tone tone) {
  Cells cells(width);
  if (!part) return cells;
  const bool is_utf8 = charset == Charset::utf8;
  const auto halves = static_cast<size_t>(std::lround(std::clamp(*part, 0.0, 1.0) * 2 * static_cast<double>(width)));
  for (size_t i = 0; i < width; ++i) {
    if (2 * i + 2 <= halves)
      cells[i] = {is_utf8 ? "━" : "=", tone};
    else if (2 * i + 1 == halves && is_utf8)
      cells[i] = {"╸", tone};
    else
      cells[i] = {is_utf8 ? "─" : "-", Tone::quiet};
  }
  return cells;
}

Cells sparkline(const snapshot::Series& series, double most, size_t width, Charset charset, Tone tone) {
  Cells cells(width);
  if (series.empty() || most <= 0) return cells;
  const auto& columns = charset == Charset::utf8 ? kColumns : kAsciiColumns;
  for (size_t i = 0; i < width; ++i) {
    const size_t first = i * series.size() / width;
    const auto value = mean(series, first, std::max(first + 1, (i + 1) * series.size() / width));
    if (!value) continue;
    const double level = std::clamp(*value / most, 0.0, 1.0) * (static_cast<double>(columns.size()) - 1);
    cells[i] = {columns[static_cast<size_t>(std::lround(level))], tone};
  }
  return cells;
}

}  // namespace remuda::top

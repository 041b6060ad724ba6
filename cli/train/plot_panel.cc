#include "cli/train/plot_panel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include "base/characters.h"

namespace remuda::cli {
namespace {

using topology::svg::Box;
using topology::svg::number;

constexpr double kLeft = 76, kRight = 24, kHeight = 190, kLegendRow = 20, kSwatch = 20;
constexpr double kTitleWidth = 330;              // of a panel's title; its legend begins after it
constexpr double kLetterWidth = 6.6;             // of 11 px, on the wide side
constexpr int kMostRows = 5, kMostColumns = 12;  // between ticks
constexpr double kRoundingError = 1e-9;

double part_of(const Range& range, double value) { return (value - range.low) / (range.high - range.low); }

/// With as many digits as tell ticks of this distance apart.
std::string tick_text(double value, double step) {
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + kRoundingError)), 0, 12);
  return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, digits);
}

}  // namespace

const char* const kPlotStyle = R"(
  .frame { fill: none; stroke: #94a3b8 } .grid { stroke: #e2e8f0 } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round }
  .band { fill-opacity: .22 } .longest { stroke: #64748b; stroke-width: 1; stroke-dasharray: 2 3 }
  .dashed { stroke-dasharray: 7 4 } .dotted { stroke-dasharray: 2 3 }
  .s0 { stroke: #0f8a76 } .s1 { stroke: #2f6fdb } .s2 { stroke: #b45ad0 } .s3 { stroke: #d98014 }
  .s4 { stroke: #c2413b } .s5 { stroke: #6b8e23 } .s6 { stroke: #0891b2 } .s7 { stroke: #8b5e3c }
  .c0 { fill: #0f8a76 } .c1 { fill: #2f6fdb } .c2 { fill: #d98014 } .c3 { fill: #b45ad0 } .c4 { fill: #b6c2d2 }
  @media (prefers-color-scheme: dark) {
    .frame { stroke: #56657a } .grid { stroke: #222c38 } .longest { stroke: #93a1b3 }
    .s0 { stroke: #2fb8a2 } .s1 { stroke: #6aa0f7 } .s2 { stroke: #cf8be6 } .s3 { stroke: #f0a848 }
    .s4 { stroke: #f08078 } .s5 { stroke: #a9c95a } .s6 { stroke: #4cc9e0 } .s7 { stroke: #c9a07a }
    .c0 { fill: #2fb8a2 } .c1 { fill: #6aa0f7 } .c2 { fill: #f0a848 } .c3 { fill: #cf8be6 } .c4 { fill: #56657a }
  }
)";

Range Range::of(std::span<const double> values) {
  Range range{INFINITY, -INFINITY};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  return range.low <= range.high ? range : Range{};
}

Range Range::rounded() const {
  Range wide = *this;
  const double least = std::max(std::abs(low), std::abs(high)) * kRoundingError;
  if (!(high - low > least)) wide = {low - std::max(0.5, least), high + std::max(0.5, least)};
  const double step = wide.step(kMostRows);
  return {std::floor(wide.low / step + kRoundingError) * step, std::ceil(wide.high / step - kRoundingError) * step};
}

double Range::step(int most) const {
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - kRoundingError)) return factor * power;
  return 10 * power;
}

std::vector<double> Range::ticks(int most) const {
  const double distance = step(most);
  const auto last = static_cast<int64_t>(std::floor(high / distance + kRoundingError));
  std::vector<double> all;
  for (auto tick = static_cast<int64_t>(std::ceil(low / distance - kRoundingError)); tick <= last; ++tick)
    all.push_back(static_cast<double>(tick) * distance);
  return all;
}

PlotPanel::PlotPanel(Axes axes, std::vector<LegendItem> legend, double top, int number)
    : axes_(std::move(axes)), legend_(std::move(legend)), top_(top), number_(number) {
  double x = kLeft + kTitleWidth, y = top;
  for (const LegendItem& item : legend_) {
    const double width = kSwatch + 8 + kLetterWidth * static_cast<double>(characters(item.name)) + 16;
    if (x + width > kWidth - kRight && x > kLeft + kTitleWidth) x = kLeft + kTitleWidth, y += kLegendRow;
    places_.push_back({x, y, width, kLegendRow});
    x += width;
  }
  frame_ = {kLeft, y + kLegendRow + 8, kWidth - kLeft - kRight, kHeight};
}

double PlotPanel::bottom() const { return frame_.bottom() + 24; }

double PlotPanel::x_of(double value) const { return frame_.x + frame_.width * part_of(axes_.x, value); }
double PlotPanel::y_of(double value) const { return frame_.bottom() - frame_.height * part_of(axes_.y, value); }
std::string PlotPanel::point(double x, double y) const {
  return fmt::format("{} {}", number(x_of(x)), number(y_of(y)));
}

void PlotPanel::line(std::span<const double> xs, std::span<const double> ys, const std::string& classes) {
  std::string path;
  bool drawing = false;
  for (size_t i = 0; i < xs.size(); ++i) {
    const bool is_there = std::isfinite(ys[i]);
    if (is_there) path += (drawing ? "L" : "M") + point(xs[i], ys[i]);
    drawing = is_there;
  }
  if (!path.empty()) marks_ += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", classes, path);
}

void PlotPanel::area(std::span<const double> xs, std::span<const double> low, std::span<const double> high,
                     const std::string& classes) {
  const auto is_there = [&](size_t i) { return std::isfinite(low[i]) && std::isfinite(high[i]); };
  std::string path;
  for (size_t begin = 0, end = 0; begin < xs.size(); begin = end + 1) {
    for (end = begin; end < xs.size() && is_there(end);) ++end;
    for (size_t i = begin; i < end; ++i) path += (i == begin ? "M" : "L") + point(xs[i], high[i]);
    for (size_t i = end; i > begin; --i) path += "L" + point(xs[i - 1], low[i - 1]);
    if (end > begin) path += "Z";
  }
  if (!path.empty()) marks_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, path);
}

std::string PlotPanel::header() const {
  std::string out = topology::svg::text(kLeft, top_ + 14, "name", "start", axes_.title);
  for (size_t i = 0; i < legend_.size(); ++i) {
    const Box& place = places_[i];
    out += legend_[i].is_area ? topology::svg::rectangle({place.x, place.y + 4, kSwatch, 12}, 2, legend_[i].classes)
                              : fmt::format("<path class=\"line {}\" d=\"M{} {}h{}\"/>\n", legend_[i].classes,
                                            number(place.x), number(place.y + 10), number(kSwatch));
    out += topology::svg::text(place.x + kSwatch + 8, place.y + 14, "plain", "start", legend_[i].name);
  }
  return out;
}

std::string PlotPanel::grid() const {
  std::string out;
  for (const double tick : axes_.y.ticks(kMostRows)) {
    out += fmt::format("<path class=\"grid\" d=\"M{} {}h{}\"/>\n", number(frame_.x), number(y_of(tick)),
                       number(frame_.width));
    out += topology::svg::text(frame_.x - 8, y_of(tick) + 4, "dim", "end", tick_text(tick, axes_.y.step(kMostRows)));
  }
  const double y = frame_.bottom() + 16;
  out += topology::svg::text(frame_.x - 26, y, "dim", "end", "step");
  for (const double tick : axes_.x.ticks(kMostColumns))
    if (tick == std::round(tick))  // there are no halves of steps
      out += topology::svg::text(x_of(tick), y, "dim", "middle", tick_text(tick, 1));
  return out;
}

std::string PlotPanel::svg() const {
  return fmt::format(
      "<g>\n{0}{1}{2}<clipPath id=\"panel{3}\"><rect x=\"{4}\" y=\"{5}\" width=\"{6}\" height=\"{7}\"/></clipPath>\n"
      "<g clip-path=\"url(#panel{3})\">\n{8}</g>\n{9}</g>\n",
      topology::svg::title(axes_.title), header(), grid(), number_, number(frame_.x), number(frame_.y),
      number(frame_.width), number(frame_.height), marks_, topology::svg::rectangle(frame_, 0, "frame"));
}

}  // namespace remuda::cli

// PlotPanel: one diagram of several below each other, as SVG: a frame with axes, lines, areas and a legend.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/svg_parts.h"

namespace remuda::cli {

struct Range {
  double low = 0, high = 1;

  /// Of the finite values; 0..1 where there are none.
  static Range of(std::span<const double> values);
  /// Of some width, and with its ends on ticks.
  Range rounded() const;
  /// The distance of ticks: 1, 2 or 5 times a power of ten, so that they cut it into `most` parts at most.
  double step(int most) const;
  std::vector<double> ticks(int most) const;
};

/// Colours of lines and areas, for light and dark; with topology::svg::kStyle.
extern const char* const kPlotStyle;

struct LegendItem {
  std::string name, classes;
  bool is_area = false;
};

class PlotPanel {
 public:
  struct Axes {
    std::string title;  ///< with the unit of `y`
    Range x, y;         ///< `y` as rounded() has it
  };
  /// Its upper edge is at `top`, where the title and the legend stand. `number`: which panel of the picture it is.
  PlotPanel(Axes axes, std::vector<LegendItem> legend, double top, int number);

  /// Through these points; a value that is not finite ends a line, and the next one begins another.
  void line(std::span<const double> xs, std::span<const double> ys, const std::string& classes);
  /// Between two curves, where both are finite.
  void area(std::span<const double> xs, std::span<const double> low, std::span<const double> high,
            const std::string& classes);

  double bottom() const;
  std::string svg() const;

  static constexpr double kWidth = 960;  ///< of the picture

 private:
  double x_of(double value) const;
  double y_of(double value) const;
  std::string point(double x, double y) const;
  std::string header() const;
  std::string grid() const;

  const Axes axes_;
  const std::vector<LegendItem> legend_;
  const double top_;
  const int number_;
  std::vector<topology::svg::Box> places_;  ///< of the items of the legend
  topology::svg::Box frame_;
  std::string marks_;
};

}  // namespace remuda::cli

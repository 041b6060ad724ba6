// The legend of the picture, and with it colour and width of each link.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/graph.h"

namespace remuda::topology::svg {

struct LegendEntry {
  std::string label;  ///< of the links: "NV2"
  Fabric fabric = Fabric::none;
  double low_gbps = 0, high_gbps = 0;
  bool measured = false;  ///< all of them
};

struct Legend {
  std::vector<LegendEntry> links;  ///< fastest first
  double widest = 0;               ///< of the strokes
  double fastest_gbps = 0;
  bool has_figures = false, has_measured = false;
};

Legend make_legend(const Graph& graph);
int legend_lines(const Legend& legend);
std::string paint_legend(const Legend& legend, double y, double width);
/// In a sentence each, for screen readers.
std::string describe(const Legend& legend);

/// "24 GB/s", "47.1-48.9 GB/s", with a * where measured.
std::string speed_text(double low_gbps, double high_gbps, bool measured);
/// Class of the colour of the links of a label.
std::string colour(const Legend& legend, std::string_view label);
double stroke(const Legend& legend, double gbps);

}  // namespace remuda::topology::svg

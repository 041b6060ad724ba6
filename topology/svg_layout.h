// Where each part of the picture stands, in its own units (CSS pixels at full size).
#pragma once

#include <vector>

#include "topology/graph.h"
#include "topology/svg_parts.h"

namespace remuda::topology::svg {

struct Curve {
  double from = 0, to = 0;  ///< x of its ends, at the bottom of the cards
  double depth = 0;         ///< how far it hangs below them
};

struct Layout {
  double width = 0, height = 0;
  std::vector<Box> nodes;     ///< by node of the graph; width 0: not drawn
  std::vector<Curve> curves;  ///< by edge of the graph; for those to a switch from = to
  double place_header = 0;    ///< height of what is written at the top of a NUMA node's box
  double cards_y = 0, cards_bottom = 0;
  double legend_y = 0;
};

inline constexpr double kMargin = 28, kHeader = 84, kHostLine = 98;
inline constexpr double kLegendLine = 22;

/// Whether a leaf is shown: CPU devices only where there is no GPU.
bool is_drawn(const Graph& graph, const GraphNode& node);
/// `legend_lines`: how many the legend will need.
Layout lay_out(const Graph& graph, int legend_lines);

}  // namespace remuda::topology::svg

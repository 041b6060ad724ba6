#include "topology/svg_legend.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "topology/svg_layout.h"
#include "topology/svg_parts.h"

namespace remuda::topology::svg {
namespace {

constexpr double kThinnest = 1.4, kSample = 34;
constexpr size_t kMostEntries = 8;

std::string gbps_text(double gbps) { return gbps >= 100 ? fmt::format("{:.0f}", gbps) : fmt::format("{:.3g}", gbps); }

void add_edge(const GraphEdge& edge, Legend& legend) {
  if (!edge.speed) return;
  const auto& [gbps, measured, reason] = *edge.speed;
  legend.fastest_gbps = std::max(legend.fastest_gbps, gbps);
  const auto known = std::find_if(legend.links.begin(), legend.links.end(),
                                  [&](const LegendEntry& entry) { return entry.label == edge.label; });
  if (known == legend.links.end()) {
    legend.links.push_back({edge.label, edge.fabric, gbps, gbps, measured});
    return;
  }
  known->low_gbps = std::min(known->low_gbps, gbps);
  known->high_gbps = std::max(known->high_gbps, gbps);
  known->measured = known->measured && measured;
}

std::string entry_text(const LegendEntry& entry) {
  const char* fabric = entry.fabric == Fabric::nvlink ? "NVLink" : "xGMI";
  return fmt::format("{} · {} · {}", entry.label, fabric, speed_text(entry.low_gbps, entry.high_gbps, entry.measured));
}

std::string sample(double x, double y, std::string_view classes, double width) {
  return fmt::format("<path class=\"{}\" stroke-width=\"{}\" d=\"M{} {}h{}\"/>\n", classes, number(width), number(x),
                     number(y), number(kSample));
}

}  // namespace

Legend make_legend(const Graph& graph) {
  Legend legend;
  for (const GraphEdge& edge : graph.edges) {
    add_edge(edge, legend);
    legend.has_measured = legend.has_measured || (edge.speed && edge.speed->measured);
  }
  for (const GraphNode& node : graph.nodes) {
    legend.has_figures = legend.has_figures || node.crossing;
    legend.has_measured = legend.has_measured || (node.crossing && node.crossing->measured);
  }
  std::stable_sort(legend.links.begin(), legend.links.end(),
                   [](const LegendEntry& a, const LegendEntry& b) { return a.high_gbps > b.high_gbps; });
  legend.has_figures = legend.has_figures || !legend.links.empty();
  legend.widest = graph.edges.size() <= 8 ? 7 : graph.edges.size() <= 20 ? 5 : 3.4;
  return legend;
}

int legend_lines(const Legend& legend) {
  return static_cast<int>(std::min(legend.links.size(), kMostEntries)) + (legend.has_figures ? 2 : 1);
}

std::string paint_legend(const Legend& legend, double y, double width) {
  std::string out = "<g>\n" + title("Legend");
  const double x = kMargin + kSample + 12, room = width - x - kMargin;
  const auto line = [&](std::string_view classes, double stroke_width, const std::string& content) {
    out += sample(kMargin, y - 4, classes, stroke_width) + text(x, y, "sub", "start", fit(content, room, 13));
    y += kLegendLine;
  };
  for (size_t i = 0; i < std::min(legend.links.size(), kMostEntries); ++i)
    line("link " + colour(legend, legend.links[i].label), stroke(legend, legend.links[i].high_gbps),
         entry_text(legend.links[i]));
  line("pcie", kThinnest, "PCIe and host memory");
  if (legend.has_figures)
    out += text(kMargin, y, "sub", "start",
                fit(legend.has_measured ? "GB/s in one direction between two devices; * measured, others assumed"
                                        : "GB/s in one direction between two devices, assumed from the kind of link",
                    width - 2 * kMargin, 13));
  return out + "</g>\n";
}

std::string describe(const Legend& legend) {
  std::string text;
  for (const LegendEntry& entry : legend.links) text += entry_text(entry) + ". ";
  return text + (legend.has_measured ? "Figures with a * are measured, others assumed." : "Figures are assumed.");
}

std::string speed_text(double low_gbps, double high_gbps, bool measured) {
  const std::string low = gbps_text(low_gbps), high = gbps_text(high_gbps);
  return fmt::format("{}{} GB/s{}", low, low == high ? "" : "–" + high, measured ? "*" : "");
}

std::string colour(const Legend& legend, std::string_view label) {
  size_t rank = 0;
  while (rank < legend.links.size() && legend.links[rank].label != label) ++rank;
  return fmt::format("f{}", std::min<size_t>(rank, kFabricColours - 1));
}

double stroke(const Legend& legend, double gbps) {
  if (legend.fastest_gbps <= 0) return kThinnest;
  return std::max(kThinnest, legend.widest * gbps / legend.fastest_gbps);
}

}  // namespace remuda::topology::svg

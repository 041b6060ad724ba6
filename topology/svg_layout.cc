#include "topology/svg_layout.h"

#include <algorithm>
#include <cmath>

#include "topology/svg_card.h"

namespace remuda::topology::svg {
namespace {

constexpr double kGpuWidth = 124, kNarrowGpuWidth = 96, kNicWidth = 64, kNicHeight = 30;
constexpr double kGap = 10, kClusterGap = 22, kPadding = 16, kPlaceGap = 26;
constexpr double kTier = 52, kPillWidth = 112, kPillHeight = 24;
constexpr double kSwitchDrop = 60, kSwitchHeight = 36, kLeastWidth = 620, kFarSpan = 600, kMostDepth = 500;
constexpr int kManyGpus = 8;

bool is_leaf(const GraphNode& node) {
  return node.kind == NodeKind::gpu || node.kind == NodeKind::cpu || node.kind == NodeKind::nic;
}

class Placer {
 public:
  explicit Placer(const Graph& graph) : graph_(graph) {
    layout_.nodes.resize(graph.nodes.size());
    gpu_width_ = std::count_if(graph.nodes.begin(), graph.nodes.end(),
                               [](const GraphNode& node) { return node.kind == NodeKind::gpu; }) > kManyGpus
                     ? kNarrowGpuWidth
                     : kGpuWidth;
  }

  Layout place(int legend_lines) {
    int tiers = 0;
    for (const int child : graph_.nodes[0].children) tiers = std::max(tiers, height(child));
    const double top = kHeader + (has_host_line() ? kHostLine - kHeader + 22 : 0);
    layout_.place_header = place_header();
    layout_.cards_y = top + layout_.place_header + 26 + std::max(0, tiers - 1) * kTier;
    card_height_ = card_height();
    layout_.cards_bottom = layout_.cards_y + card_height_;
    double x = kMargin;
    for (const int child : graph_.nodes[0].children) x = place_top(child, x, top);
    layout_.width = std::max(kLeastWidth, x - kPlaceGap + kMargin);
    center(layout_.width - (x - kPlaceGap + kMargin));
    const double bottom = place_fabric(layout_.cards_bottom + kPadding);
    layout_.legend_y = bottom + 34;
    layout_.height = layout_.legend_y + legend_lines * kLegendLine + kMargin - 12;
    return std::move(layout_);
  }

 private:
  double place_header() const {
    bool any_detail = false, any_crossing = false;
    for (const GraphNode& node : graph_.nodes) {
      if (node.kind != NodeKind::numa) continue;
      any_detail = any_detail || !node.cores.empty() || node.memory_bytes.has_value();
      any_crossing = any_crossing || node.crossing;
    }
    return 32 + (any_detail ? 16 : 0) + (any_crossing ? 16 : 0);
  }

  /// All cards are as high as the fullest one needs.
  double card_height() const {
    double most = 0;
    for (const GraphNode& node : graph_.nodes)
      if (node.device && is_drawn(graph_, node)) most = std::max(most, svg::card_height(*node.device, gpu_width_));
    return most;
  }

  bool has_host_line() const { return graph_.nodes[0].children.size() > 1; }

  int height(int node) const {
    int most = 0;
    for (const int child : graph_.nodes[node].children) most = std::max(most, height(child));
    return is_leaf(graph_.nodes[node]) ? 0 : most + 1;
  }

  /// A NUMA node's box, or a device that stands in none; where the next one begins.
  double place_top(int node, double x, double top) {
    if (graph_.nodes[node].kind != NodeKind::numa) {
      const double end = place_tree(node, x);
      return end == x ? x : end + kPlaceGap;
    }
    const double end = std::max(place_children(node, x + kPadding), x + kPadding + kGpuWidth);
    layout_.nodes[node] = {x, top, end + kPadding - x, layout_.cards_bottom + kPadding - top};
    return end + kPadding + kPlaceGap;
  }

  /// The end of the last child; each kind of neighbour keeps its distance.
  double place_children(int node, double x) {
    const auto& children = graph_.nodes[node].children;
    double end = x;
    for (size_t i = 0; i < children.size(); ++i) {
      const bool is_cluster = !is_leaf(graph_.nodes[children[i]]) || (i > 0 && !is_leaf(graph_.nodes[children[i - 1]]));
      const double start = end == x ? x : end + (is_cluster ? kClusterGap : kGap);
      const double next = place_tree(children[i], start);
      if (next > start) end = next;
    }
    return end;
  }

  double place_tree(int node, double x) {
    if (is_leaf(graph_.nodes[node])) return place_leaf(node, x);
    const double end = std::max(place_children(node, x), x + kPillWidth);
    const double y = layout_.cards_y - height(node) * kTier;
    layout_.nodes[node] = {(x + end - kPillWidth) / 2, y, kPillWidth, kPillHeight};
    return end;
  }

  double place_leaf(int node, double x) {
    if (!is_drawn(graph_, graph_.nodes[node])) return x;
    const bool is_nic = graph_.nodes[node].kind == NodeKind::nic;
    const double width = is_nic ? kNicWidth : gpu_width_;
    layout_.nodes[node] = {x, layout_.cards_y, width, is_nic ? kNicHeight : card_height_};
    return x + width;
  }

  void center(double spare) {
    if (spare <= 0) return;
    for (Box& box : layout_.nodes) box.x += spare / 2;
  }

  double place_fabric(double y) {
    layout_.curves.resize(graph_.edges.size());
    double bottom = y;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      if (graph_.nodes[node].kind == NodeKind::fabric_switch) bottom = place_switch(static_cast<int>(node), y, bottom);
    for (size_t node = 0; node < graph_.nodes.size(); ++node) spread_ports(static_cast<int>(node));
    for (Curve& curve : layout_.curves) {
      if (curve.from == curve.to) continue;
      const double span = std::abs(curve.to - curve.from);
      curve.depth = std::min(kMostDepth, 44 + 0.27 * std::min(span, kFarSpan) + 0.12 * std::max(0.0, span - kFarSpan));
      bottom = std::max(bottom, layout_.cards_bottom + 0.75 * curve.depth + 24);
    }
    return bottom;
  }

  double place_switch(int node, double y, double bottom) {
    double left = layout_.width, right = 0, below = y + kSwitchDrop;
    for (size_t i = 0; i < graph_.edges.size(); ++i) {
      if (graph_.edges[i].b != node) continue;
      const Box& card = layout_.nodes[graph_.edges[i].a];
      layout_.curves[i] = {card.center(), card.center(), 0};
      left = std::min(left, card.x), right = std::max(right, card.x + card.width);
    }
    for (const int other : switches_) {
      const Box& box = layout_.nodes[other];
      if (box.x < right && left < box.x + box.width) below = std::max(below, box.bottom() + 14);
    }
    switches_.push_back(node);
    layout_.nodes[node] = {left, below, right - left, kSwitchHeight};
    return std::max(bottom, below + kSwitchHeight);
  }

  /// Ports along a card's lower edge, so that curves nest: short ones outside, long ones in the middle.
  void spread_ports(int node) {
    struct End {
      double key;
      double* x;
    };
    std::vector<End> ends;
    const Box& card = layout_.nodes[node];
    for (size_t i = 0; i < graph_.edges.size(); ++i) {
      const GraphEdge& edge = graph_.edges[i];
      if (graph_.nodes[edge.b].kind == NodeKind::fabric_switch || (edge.a != node && edge.b != node)) continue;
      const Box& other = layout_.nodes[edge.a == node ? edge.b : edge.a];
      const double span = other.center() - card.center();
      ends.push_back(
          {span < 0 ? -1e6 - span : 1e6 - span, edge.a == node ? &layout_.curves[i].from : &layout_.curves[i].to});
    }
    std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.key < b.key; });
    const double usable = card.width - 28, step = std::min(16.0, usable / std::max<size_t>(1, ends.size()));
    double x = card.center() - step * (static_cast<double>(ends.size()) - 1) / 2;
    for (const End& end : ends) *end.x = x, x += step;
  }

  const Graph& graph_;
  Layout layout_;
  double gpu_width_ = kGpuWidth, card_height_ = 0;
  std::vector<int> switches_;
};

}  // namespace

bool is_drawn(const Graph& graph, const GraphNode& node) {
  return node.kind != NodeKind::cpu || std::none_of(graph.nodes.begin(), graph.nodes.end(),
                                                    [](const GraphNode& other) { return other.kind == NodeKind::gpu; });
}

Layout lay_out(const Graph& graph, int legend_lines) { return Placer(graph).place(legend_lines); }

}  // namespace remuda::topology::svg

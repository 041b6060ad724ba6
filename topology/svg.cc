#include "topology/svg.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"
#include "topology/svg_card.h"
#include "topology/svg_layout.h"
#include "topology/svg_legend.h"
#include "topology/svg_parts.h"

namespace remuda::topology::svg {
namespace {

constexpr size_t kMostDrawn = 64;
constexpr size_t kFewEdges = 8;  ///< so many curves carry their own label

size_t count(const Graph& graph, NodeKind kind) {
  return static_cast<size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) { return node.kind == kind; }));
}

std::string summary(const Graph& graph) {
  std::string text;
  const auto add = [&](NodeKind kind, const char* one) {
    if (const size_t n = count(graph, kind); n > 0) text += (text.empty() ? "" : " · ") + plural(n, one);
  };
  add(NodeKind::gpu, "GPU");
  if (text.empty()) add(NodeKind::cpu, "CPU device");
  add(NodeKind::numa, "NUMA node");
  add(NodeKind::nic, "network card");
  return text.empty() ? "no devices" : text;
}

std::string crossing_text(const GraphNode::Crossing& crossing) {
  return fmt::format("{} · {}", crossing.label, speed_text(crossing.low_gbps, crossing.high_gbps, crossing.measured));
}

const char* figure_class(bool measured) { return measured ? "figure measured" : "figure"; }

class Painter {
 public:
  explicit Painter(const Graph& graph)
      : graph_(graph), legend_(make_legend(graph)), layout_(lay_out(graph, legend_lines(legend_))) {}

  std::string paint() {
    open();
    host_line();
    for (size_t i = 1; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].kind == NodeKind::numa) place(static_cast<int>(i));
    for (size_t i = 1; i < graph_.nodes.size(); ++i) tree_line(static_cast<int>(i));
    for (size_t i = 0; i < graph_.edges.size(); ++i) link(i);
    for (size_t i = 1; i < graph_.nodes.size(); ++i) node(static_cast<int>(i));
    for (size_t i = 0; i < graph_.edges.size() && graph_.edges.size() <= kFewEdges; ++i) link_label(i);
    out_ += paint_legend(legend_, layout_.legend_y, layout_.width);
    return out_ + "</svg>\n";
  }

 private:
  const topology::svg::Box& box(int node) const { return layout_.nodes[node]; }

  void open() {
    const std::string host = graph_.nodes[0].name.empty() ? "this machine" : graph_.nodes[0].name;
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
        "aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n<desc "
        "id=\"desc\">{3}</desc>\n<style>{4}</style>\n",
        number(layout_.width), number(layout_.height), escape("Topology of " + host),
        escape(summary(graph_) + ". " + describe(legend_)), kStyle);
    out_ += rectangle({0, 0, layout_.width, layout_.height}, 12, "page");
    out_ +=
        text(topology::svg::kMargin, 44, "host", "start", fit(host, layout_.width - 2 * topology::svg::kMargin, 21));
    out_ += text(topology::svg::kMargin, 66, "sub", "start",
                 fit(summary(graph_), layout_.width - 2 * topology::svg::kMargin, 13));
  }

  void host_line() {
    std::vector<int> shown;
    for (const int child : graph_.nodes[0].children)
      if (box(child).width > 0) shown.push_back(child);
    if (shown.size() < 2) return;
    const double left = box(shown.front()).center(), right = box(shown.back()).center();
    for (const int child : shown)
      out_ += elbow(left, topology::svg::kHostLine, topology::svg::kHostLine, box(child).center(), box(child).y);
    if (const auto& crossing = graph_.nodes[0].crossing) {
      const topology::svg::Box pill{(left + right) / 2 - 80, topology::svg::kHostLine - 13, 160, 26};
      out_ += rectangle(pill, 13, "pill");
      out_ += text(pill.center(), topology::svg::kHostLine + 4, figure_class(crossing->measured), "middle",
                   crossing_text(*crossing));
    }
  }

  void place(int index) {
    const GraphNode& node = graph_.nodes[index];
    const topology::svg::Box& at = box(index);
    const double room = at.width - 24;
    std::string detail;
    if (!node.cores.empty()) detail = plural(node.cores.size(), "core");
    if (node.memory_bytes.has_value())
      detail += (detail.empty() ? "" : " · ") + human_bytes(static_cast<double>(node.memory_bytes.value()));
    out_ += "<g>\n" + title(node.name + (detail.empty() ? "" : ": " + detail)) + rectangle(at, 10, "place");
    out_ += text(at.x + 12, at.y + 20, "name", "start", fit(node.name, room, 13.5));
    double y = at.y + 36;
    if (!detail.empty()) {
      out_ += text(at.x + 12, y, "dim", "start", fit(detail, room, 11));
      y += 16;
    }
    if (node.crossing)
      out_ += text(at.x + 12, y, figure_class(node.crossing->measured), "start",
                   fit(crossing_text(*node.crossing), room, 11.5));
    out_ += "</g>\n";
  }

  void tree_line(int index) {
    const GraphNode& node = graph_.nodes[index];
    if (node.parent <= 0 || box(index).width == 0) return;
    const bool from_place = graph_.nodes[node.parent].kind == NodeKind::numa;
    const double turn = from_place ? box(node.parent).y + layout_.place_header : box(node.parent).bottom() + 12;
    out_ += elbow(from_place ? box(index).center() : box(node.parent).center(),
                  from_place ? turn : box(node.parent).bottom(), turn, box(index).center(), box(index).y);
    if (from_place) root_line(node.parent, turn);
  }

  /// The horizontal line below a NUMA node's header from which its tree hangs.
  void root_line(int place, double y) {
    if (std::find(rooted_.begin(), rooted_.end(), place) != rooted_.end()) return;
    rooted_.push_back(place);
    out_ += fmt::format("<path class=\"pcie\" d=\"M{} {}H{}\"/>\n", number(box(place).x + 12), number(y),
                        number(box(place).x + box(place).width - 12));
  }

  void node(int index) {
    const GraphNode& node = graph_.nodes[index];
    if (box(index).width == 0 || node.kind == NodeKind::numa) return;
    out_ += "<g>\n";
    if (node.device)
      out_ += paint_card(node, box(index));
    else if (node.kind == NodeKind::fabric_switch)
      fabric_switch(index);
    else
      pill(node, box(index));
    out_ += "</g>\n";
  }

  void pill(const GraphNode& node, const topology::svg::Box& at) {
    const bool is_nic = node.kind == NodeKind::nic;
    out_ += title(is_nic ? "network card " + node.name : node.name) +
            rectangle(at, is_nic ? 6 : 12, is_nic ? "nic" : "pill");
    const std::string content = node.crossing ? crossing_text(*node.crossing) : node.name;
    const bool measured = node.crossing && node.crossing->measured;
    out_ += text(at.center(), at.y + at.height / 2 + 4, node.crossing ? figure_class(measured) : "plain", "middle",
                 fit(content, at.width - 8, 11));
  }

  void fabric_switch(int index) {
    const topology::svg::Box& at = box(index);
    const GraphNode& node = graph_.nodes[index];
    std::string content = node.name;
    for (const GraphEdge& edge : graph_.edges)
      if (edge.b == index && edge.speed) {
        content += fmt::format(" · {} · {} for each GPU", edge.label,
                               speed_text(edge.speed->gbps, edge.speed->gbps, edge.speed->measured));
        break;
      }
    out_ += title(content) + rectangle(at, 8, "fabric");
    out_ += text(at.center(), at.y + at.height / 2 + 5, "name", "middle", fit(content, at.width - 12, 13.5));
  }

  void link(size_t index) {
    const GraphEdge& edge = graph_.edges[index];
    const topology::svg::Curve& curve = layout_.curves[index];
    const double y = layout_.cards_bottom;
    const std::string reason = edge.speed ? ": " + edge.speed->reason : "";
    out_ += "<g>\n" + title(fmt::format("{} - {}, {}{}", graph_.nodes[edge.a].name, graph_.nodes[edge.b].name,
                                        edge.label, reason));
    const bool to_switch = graph_.nodes[edge.b].kind == NodeKind::fabric_switch;
    const std::string way = to_switch ? fmt::format("M{} {}V{}", number(curve.from), number(y), number(box(edge.b).y))
                                      : fmt::format("M{0} {1}C{0} {2} {3} {2} {3} {1}", number(curve.from), number(y),
                                                    number(y + curve.depth), number(curve.to));
    out_ += fmt::format("<path class=\"link {}\" stroke-width=\"{}\" d=\"{}\"/>\n</g>\n", colour(legend_, edge.label),
                        number(stroke(legend_, edge.speed ? edge.speed->gbps : 0)), way);
  }

  void link_label(size_t index) {
    const GraphEdge& edge = graph_.edges[index];
    const topology::svg::Curve& curve = layout_.curves[index];
    if (graph_.nodes[edge.b].kind == NodeKind::fabric_switch || !edge.speed) return;
    const std::string content =
        fmt::format("{} · {}", edge.label, speed_text(edge.speed->gbps, edge.speed->gbps, edge.speed->measured));
    out_ += text((curve.from + curve.to) / 2, layout_.cards_bottom + 0.75 * curve.depth + 17,
                 edge.speed->measured ? "figure halo measured" : "figure halo", "middle", content);
  }

  const Graph& graph_;
  const topology::svg::Legend legend_;
  const topology::svg::Layout layout_;
  std::vector<int> rooted_;
  std::string out_;
};

}  // namespace
}  // namespace remuda::topology::svg

namespace remuda::topology {

Result<std::string> topology_svg(const Graph& graph) {
  const size_t drawn =
      static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
        return (node.device || node.kind == NodeKind::nic) && svg::is_drawn(graph, node);
      }));
  if (drawn > svg::kMostDrawn)
    return usage_error(fmt::format("the picture has room for {} devices and network cards, this machine has {}",
                                   svg::kMostDrawn, drawn));
  return svg::Painter(graph).paint();
}

}  // namespace remuda::topology

#include "topology/label.h"

#include <fmt/format.h>

namespace remuda::topology {
namespace {

std::string counted(const char* prefix, const char* otherwise, const Reading<int>& links) {
  return links.value_or(0) > 0 ? fmt::format("{}{}", prefix, links.value()) : otherwise;
}

}  // namespace

std::string link_label(const Link& link) {
  if (!link.label.empty()) return link.label;
  const Fabric fabric = link.fabric.value_or(Fabric::none);
  if (fabric == Fabric::nvlink) return counted("NV", "NVLINK", link.fabric_links);
  if (fabric == Fabric::xgmi) return counted("XG", "XGMI", link.fabric_links);
  return link.path.has_value() ? to_string(link.path.value()) : "?";
}

std::string pair_label(const Device& a, const Device& b, const Link* link) {
  if (a.id == b.id) return "X";
  if (link) return link_label(*link);
  const bool both_known = a.numa_node.has_value() && b.numa_node.has_value();
  if (a.kind != DeviceKind::cpu || b.kind != DeviceKind::cpu || !both_known) return "?";
  return to_string(a.numa_node.value() == b.numa_node.value() ? Path::node : Path::sys);
}

}  // namespace remuda::topology

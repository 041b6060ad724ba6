#include "topology/svg_card.h"

#include <fmt/format.h>

#include "base/text.h"
#include "topology/svg_parts.h"

namespace remuda::topology::svg {
namespace {

constexpr size_t kModelLines = 2;
constexpr double kTextSize = 11, kLine = 14, kHead = 40, kSide = 18;

std::string lanes(const Device& device) {
  const int width = device.status.pcie_width.value_or(device.pcie_width_max.value_or(0));
  return fmt::format("PCIe {}{}", device.pcie_generation_max.value(), width > 0 ? fmt::format(" x{}", width) : "");
}

std::vector<std::string> details(const Device& device) {
  std::vector<std::string> lines;
  if (device.memory_bytes.has_value()) lines.push_back(human_bytes(static_cast<double>(device.memory_bytes.value())));
  if (device.kind == DeviceKind::cpu && device.cores.has_value())
    lines.push_back(plural(device.cores.value().size(), "core"));
  if (device.partitioned.value_or(false))
    lines.emplace_back("partitioned");
  else if (device.pcie_generation_max.has_value())
    lines.push_back(lanes(device));
  return lines;
}

std::vector<std::string> model_lines(const Device& device, double width) {
  return wrap(printable(device.model), width - kSide, kTextSize, kModelLines);
}

std::string describe(const Device& device) {
  std::string text = fmt::format("{}: {}", device.label(), device.model);
  for (const std::string& line : details(device)) text += ", " + line;
  return text + ", " + device.id;
}

}  // namespace

std::string plural(size_t count, const char* one) { return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s"); }

double card_height(const Device& device, double width) {
  const size_t lines = model_lines(device, width).size() + details(device).size();
  return kHead + kLine * static_cast<double>(lines) - (lines > 0 ? 2 : 4);
}

std::string paint_card(const GraphNode& node, const Box& box) {
  const Device& device = *node.device;
  const double x = box.x + 12;
  std::string out = title(describe(device)) + rectangle(box, 8, "card");
  out += rectangle({box.x + 1, box.y + 10, 4, 16}, 2, "band");
  out += text(x, box.y + 22, "name", "start", fit(node.name, box.width - kSide, 13.5));
  double y = box.y + kHead;
  for (const std::string& line : model_lines(device, box.width)) {
    out += text(x, y, "model", "start", line);
    y += kLine;
  }
  for (const std::string& line : details(device)) {
    out += text(x, y, "dim", "start", fit(line, box.width - kSide, kTextSize));
    y += kLine;
  }
  return out;
}

}  // namespace remuda::topology::svg

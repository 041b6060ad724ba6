#include "topology/svg_parts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"

namespace remuda::topology::svg {
namespace {

constexpr double kLetter = 0.57;  // mean width of a letter of a sans serif, in units of its size

constexpr size_t kTitleLetters = 300;

size_t letters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

/// The first `count` letters.
std::string_view head(std::string_view text, size_t count) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && count-- == 0) break;
  }
  return text.substr(0, end);
}

size_t capacity(double width, double size) {
  return static_cast<size_t>(std::max(1.0, std::floor(width / (size * kLetter))));
}

/// Where a line of at most `most` letters may end; the whole text where nothing breaks it.
size_t break_point(std::string_view text, size_t most) {
  const size_t room = head(text, most).size();
  if (room == text.size()) return room;
  const size_t space = text.substr(0, room + 1).find_last_of(' ');
  const size_t dash = text.substr(0, room).find_last_of("-/");
  if (space != std::string_view::npos && space > 0) return space;
  return dash != std::string_view::npos && dash > 0 ? dash + 1 : text.size();
}

}  // namespace

const char* const kStyle = R"(
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-size: 11px; fill: #1f2937 }
  .host { font-size: 20px; font-weight: 700 } .sub { font-size: 13px } .name { font-size: 13px; font-weight: 600 }
  .dim, .sub { fill: #64748b } .figure { font-weight: 600 } .measured { fill: #047857 }
  .page { fill: #ffffff } .place { fill: #f6f8fb; stroke: #d5dce6 } .card { fill: #ffffff; stroke: #94a3b8 }
  .band { fill: #475569 } .nic { fill: #fdf6e7; stroke: #d8b978 } .pill { fill: #e6ebf2; stroke: #b6c2d2 }
  .fabric { fill: #e3f4f0; stroke: #0f8a76 }
  .pcie { fill: none; stroke: #94a3b8; stroke-width: 1.6; stroke-linejoin: round }
  .link { fill: none; stroke-linecap: round; stroke-opacity: .82 }
  .f0 { stroke: #0f8a76 } .f1 { stroke: #2f6fdb } .f2 { stroke: #b45ad0 } .f3 { stroke: #d98014 }
  .halo { stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .dim, .sub { fill: #93a1b3 } .measured { fill: #4ade9b }
    .page { fill: #0d1117 } .place { fill: #151b23; stroke: #303a47 } .card { fill: #1d2530; stroke: #56657a }
    .band { fill: #8fa1b8 } .nic { fill: #2b2517; stroke: #7d6a3e } .pill { fill: #263140; stroke: #45546a }
    .fabric { fill: #10302b; stroke: #2fb8a2 } .pcie { stroke: #5f6f84 }
    .f0 { stroke: #2fb8a2 } .f1 { stroke: #6aa0f7 } .f2 { stroke: #cf8be6 } .f3 { stroke: #f0a848 }
    .halo { stroke: #0d1117 }
  }
)";

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string fit(std::string_view text, double width, double size) {
  const size_t most = capacity(width, size);
  return letters(text) <= most ? std::string(text) : std::string(head(text, most - 1)) + "…";
}

std::vector<std::string> wrap(std::string_view text, double width, double size, size_t lines) {
  std::vector<std::string> result;
  while (result.size() + 1 < lines && letters(text) > capacity(width, size)) {
    const size_t end = break_point(text, capacity(width, size));
    result.push_back(fit(text.substr(0, end), width, size));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  if (!text.empty()) result.push_back(fit(text, width, size));
  return result;
}

std::string number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

std::string text(double x, double y, std::string_view classes, std::string_view anchor, std::string_view content) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", number(x), number(y),
                     classes, anchor, escape(content));
}

std::string rectangle(const Box& box, double radius, std::string_view classes) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" class=\"{}\"/>\n", number(box.x),
                     number(box.y), number(box.width), number(box.height), number(radius), classes);
}

std::string elbow(double x, double y, double turn, double to_x, double to_y) {
  return fmt::format("<path class=\"pcie\" d=\"M{} {}V{}H{}V{}\"/>\n", number(x), number(y), number(turn), number(to_x),
                     number(to_y));
}

std::string title(std::string_view content) {
  const std::string_view shown = head(content, kTitleLetters);
  return fmt::format("<title>{}{}</title>\n", escape(shown), shown.size() < content.size() ? "…" : "");
}

}  // namespace remuda::topology::svg

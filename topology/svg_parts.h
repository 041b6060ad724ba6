// The pieces an SVG document is written with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remuda::topology::svg {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;

  double center() const { return x + width / 2; }
  double bottom() const { return y + height; }
};

/// Colours and type, for light and dark.
extern const char* const kStyle;
inline constexpr int kFabricColours = 4;  ///< classes f0, the fastest, to f3

/// Safe between tags and in attributes: no markup, no control characters, UTF-8.
std::string escape(std::string_view text);
/// At most `width` units wide at `size`, by an estimate of the letters' width; clipped text ends in an ellipsis.
std::string fit(std::string_view text, double width, double size);
/// Broken at spaces and dashes into at most `lines` that fit; the last one is clipped.
std::vector<std::string> wrap(std::string_view text, double width, double size, size_t lines);

/// 12.5 -> "12.5", 24 -> "24": coordinates without noise.
std::string number(double value);

/// <text>; `anchor` is start, middle or end. Escapes.
std::string text(double x, double y, std::string_view classes, std::string_view anchor, std::string_view content);
std::string rectangle(const Box& box, double radius, std::string_view classes);
/// From the middle of a parent's lower edge at (x, y) down to (to_x, to_y), in right angles that turn at `turn`.
std::string elbow(double x, double y, double turn, double to_x, double to_y);
/// <title>, read aloud and shown on hover; at most 300 letters. Escapes.
std::string title(std::string_view content);

}  // namespace remuda::topology::svg

// Small helpers for text that people read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remuda {

/// Edits (insert, delete, replace one character) that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);
/// The word of `known` nearest to `word`, or empty when none is near enough.
std::string nearest(std::string_view word, std::span<const std::string> known);

/// Splits at each `separator`; "a,,b" gives three parts.
std::vector<std::string> split(std::string_view text, char separator);

/// The text with each control character except tab (also those of C1), each mark that turns the direction of writing or
/// ends a line or paragraph, and each byte that is not UTF-8 replaced by "?": makes untrusted text safe for a terminal.
std::string printable(std::string_view text);

/// Whether all of it is UTF-8: what is not is changed on its way through JSON, and refused by TOML.
bool is_utf8(std::string_view text);

/// Names that come several times get a number each: {"a", "b", "a"} -> {"a #1", "b", "a #2"}.
std::vector<std::string> made_distinct(std::vector<std::string> names);

/// 1536 -> "1.5 KiB", 3221225472 -> "3.0 GiB".
std::string human_bytes(double bytes);
/// 1 device, 2 devices, 0.5 devices. The thing is one whose plural ends in s.
std::string counted(double count, std::string_view thing);
/// {0,1,2,5} -> "0-2,5".
std::string index_ranges(std::span<const int> indices);
/// The reverse, for any text: nothing unless it is such a list, in ascending order and below 65536; "" is the empty
/// one.
std::optional<std::vector<int>> parse_index_ranges(std::string_view text);

}  // namespace remuda

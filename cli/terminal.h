// The properties of the terminal that subcommands write to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace remuda::cli {

/// Characters in a line of the terminal that `fd` is; nothing where it is none, or its width is not known.
std::optional<size_t> terminal_width(int fd);

/// How wide a table on stdout may be: as the terminal, and without limit where stdout is not a terminal.
size_t table_width();

/// The text with each line that is longer than `width` characters broken between words. Continuation lines begin where
/// the text of the line did, after its last gap of two blanks or more; what stands after a gap in the second half of an
/// indented line begins below. Words that are longer than a line stay whole.
std::string fitted(std::string_view text, size_t width);

/// The text with the lines of each paragraph joined, so that fitted() can break it for any width. Lines that are
/// indented, or shorter than most, stay lines.
std::string unbroken(std::string_view text);

/// Prints it on stdout, fitted where that is a terminal.
void print_fitted(std::string_view text);

}  // namespace remuda::cli

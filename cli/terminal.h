// What the subcommands need to know of the terminal they write to.
#pragma once

#include <cstddef>
#include <optional>

namespace remuda::cli {

/// Characters in a line of the terminal that `fd` is; nothing where it is none, or does not tell.
std::optional<size_t> terminal_width(int fd);

/// How wide a table on stdout may be: as the terminal, and without limit where stdout is none.
size_t table_width();

}  // namespace remuda::cli

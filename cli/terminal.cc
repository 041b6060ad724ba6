#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/table.h"

namespace remuda::cli {

std::optional<size_t> terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

size_t table_width() { return terminal_width(STDOUT_FILENO).value_or(Table::kAnyWidth); }

}  // namespace remuda::cli

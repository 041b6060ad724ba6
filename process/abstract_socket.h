// Abstract Unix sockets: names that exist as long as a process holds them, however it ends, and that all processes in
// the same network namespace can see; each namespace has its own names. See unix(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace remuda::process {

/// The longest name of one.
inline constexpr size_t kLongestSocketName = 107;

/// Holds the name until the descriptor and all its copies are closed. An error where another process holds it.
Result<Fd> hold_name(const std::string& name);

struct HeldName {
  std::string name;
  /// Who made the socket, as the kernel reports it, so it cannot be forged. Nothing where the kernel does not answer
  /// (before Linux 5.3, or without its module unix_diag).
  std::optional<int> user;
};
/// The names that start with `prefix`, of all users. An error where /proc does not show them. A line that another name
/// has forged, by a newline in it, is left out where the kernel answers.
Result<std::vector<HeldName>> held_names(const std::string& prefix);

}  // namespace remuda::process

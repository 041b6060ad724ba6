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
  uint32_t inode = 0;  ///< of the socket
};
/// The names that start with `prefix`, of all users. An error where /proc does not show them.
Result<std::vector<HeldName>> held_names(const std::string& prefix);

/// The user who made the socket, as the kernel reports it, so it cannot be forged. Nothing where the socket is gone, or
/// the kernel does not answer (before Linux 5.3, or without its module unix_diag).
std::optional<int> user_of_socket(uint32_t inode);

}  // namespace remuda::process

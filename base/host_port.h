// HostPort: where something listens, as people write it: HOST:PORT, [::1]:PORT, :PORT or PORT.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace remuda {

struct HostPort {
  std::string host;  ///< a name or an address without brackets; empty: not given
  int port = 0;      ///< 1 to 65535
  bool operator==(const HostPort&) const = default;
};

/// Nothing for any other text.
std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace remuda

#include "base/host_port.h"

#include "base/number.h"

namespace remuda {

std::optional<HostPort> parse_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string_view host = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (!is_bracketed && host.find_first_of(":[] /") != std::string_view::npos) return std::nullopt;
  const auto port = parse_number<int>(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return HostPort{std::string(host), *port};
}

}  // namespace remuda

#include "device/pci_address.h"

#include <cstdint>
#include <fmt/format.h>

#include "base/number.h"

namespace remuda {
namespace {

/// Takes hexadecimal digits up to `stop` (or the end, for 0) off the front of `text`.
std::optional<uint32_t> take(std::string_view& text, char stop, size_t max_digits) {
  const size_t end = stop ? text.find(stop) : text.size();
  if (end == std::string_view::npos || end == 0 || end > max_digits) return std::nullopt;
  const auto value = parse_number<uint32_t>(text.substr(0, end), 16);
  if (value) text.remove_prefix(stop ? end + 1 : end);
  return value;
}

}  // namespace

std::optional<std::string> pci_address(std::string_view text) {
  const bool has_domain = text.find(':') != text.rfind(':');
  const auto domain = has_domain ? take(text, ':', 8) : 0;
  const auto bus = take(text, ':', 2);
  const auto device = take(text, '.', 2);
  const auto function = take(text, 0, 1);
  if (!domain || !bus || !device || !function || *device > 0x1f || *function > 7) return std::nullopt;
  return fmt::format("{:0{}x}:{:02x}:{:02x}.{:x}", *domain, *domain > 0xffff ? 8 : 4, *bus, *device, *function);
}

}  // namespace remuda

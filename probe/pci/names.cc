#include "probe/pci/names.h"

#include <array>
#include <fmt/format.h>
#include <string_view>

#include "base/text.h"

namespace remuda::probe::pci {
namespace {

constexpr size_t kLongestLine = 1024;

/// The text after the number in a line "10de  NVIDIA Corporation", or nothing for another number.
std::optional<std::string_view> after(std::string_view line, const std::string& number) {
  if (!line.starts_with(number) || line.size() <= number.size() || line[number.size()] != ' ') return std::nullopt;
  const size_t name = line.find_first_not_of(' ', number.size());
  return name == std::string_view::npos ? std::nullopt : std::optional(line.substr(name));
}

std::string product(std::string_view name) {
  const size_t open = name.rfind('['), close = name.rfind(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open + 1)
    name = name.substr(open + 1, close - open - 1);
  return printable(name);
}

}  // namespace

std::optional<std::string> find_name(std::istream& list, uint16_t vendor, uint16_t device) {
  const std::string vendor_number = fmt::format("{:04x}", vendor), device_number = fmt::format("{:04x}", device);
  bool in_vendor = false;
  std::array<char, kLongestLine> buffer;
  while (list.getline(buffer.data(), buffer.size())) {
    const std::string_view line = buffer.data();
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with('\t')) {
      if (in_vendor) break;
      in_vendor = after(line, vendor_number).has_value();
    } else if (in_vendor) {
      if (const auto name = after(line.substr(1), device_number)) return product(*name);
    }
  }
  return std::nullopt;
}

}  // namespace remuda::probe::pci

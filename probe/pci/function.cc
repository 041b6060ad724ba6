#include "probe/pci/function.h"

#include <fmt/format.h>

#include "base/number.h"
#include "device/pci_address.h"
#include "probe/sysfs.h"

namespace remuda::probe::pci {
namespace {

Reading<int> read_numa_node(const std::string& folder, const std::string& address) {
  constexpr int kNone = -1, kMost = 65535;
  const auto node = sysfs::read_integer(folder + "/numa_node", kNone, kMost);
  if (node.has_value() && node.value() == kNone)
    return Missing{MissingReason::unsupported,
                   fmt::format("the firmware does not report the NUMA node of {}", address)};
  return sysfs::to_int(node);
}

}  // namespace

std::optional<Function> read_function(const std::string& path) {
  const std::string folder = sysfs::real_path(path);
  const auto address = pci_address(folder.substr(folder.rfind('/') + 1));
  auto place = place_of(folder);
  if (!address || !place || sysfs::exists(folder + "/physfn")) return std::nullopt;
  Function function{folder, *address, std::move(*place), read_numa_node(folder, *address)};
  if (function.numa_node.has_value()) function.place.numa_node = function.numa_node.value();
  return function;
}

std::optional<uint32_t> read_hex(const std::string& path) {
  const auto text = sysfs::read(path);
  if (!text.has_value() || !text.value().starts_with("0x")) return std::nullopt;
  return parse_number<uint32_t>(std::string_view(text.value()).substr(2), 16);
}

}  // namespace remuda::probe::pci

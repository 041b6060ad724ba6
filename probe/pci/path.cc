#include "probe/pci/path.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "device/pci_address.h"

namespace remuda::probe::pci {

std::optional<Place> place_of(std::string_view real_path) {
  const std::vector<std::string> names = split(real_path, '/');
  const auto is_root = [](const std::string& name) {
    return name.starts_with("pci") && name.find(':') != std::string::npos;
  };
  const auto root = std::find_if(names.rbegin(), names.rend(), is_root);
  if (root == names.rend()) return std::nullopt;
  Place place{printable(*root), {}, std::nullopt};
  std::copy_if(root.base(), names.end(), std::back_inserter(place.bridges),
               [](const std::string& name) { return pci_address(name).has_value(); });
  if (place.bridges.empty()) return std::nullopt;
  place.bridges.pop_back();
  return place;
}

Path path_between(const Place& a, const Place& b, bool one_numa_node) {
  if (a.root == b.root) {
    const auto [end_a, end_b] = std::ranges::mismatch(a.bridges, b.bridges);
    if (end_a == a.bridges.begin()) return Path::phb;
    return a.bridges.end() - end_a <= 1 && b.bridges.end() - end_b <= 1 ? Path::pix : Path::pxb;
  }
  if (one_numa_node) return Path::node;
  if (!a.numa_node || !b.numa_node) return Path::pcie;
  return a.numa_node == b.numa_node ? Path::node : Path::sys;
}

}  // namespace remuda::probe::pci

#include "probe/pci/nic.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "probe/pci/function.h"
#include "probe/sysfs.h"

namespace remuda::probe::pci {
namespace {

/// The function of an entry of a device class; a paravirtual device is below its function in the tree.
std::optional<Function> function_behind(const std::string& entry) {
  const std::string device = sysfs::real_path(entry + "/device");
  const size_t name = device.rfind('/');
  if (name == std::string::npos) return std::nullopt;
  return read_function(device.substr(name + 1).starts_with("virtio") ? device.substr(0, name) : device);
}

}  // namespace

std::vector<NicAt> find_nics(const std::string& sysfs) {
  std::vector<NicAt> nics;
  for (const char* kind : {"infiniband", "net"}) {
    const std::string folder = fmt::format("{}/class/{}", sysfs, kind);
    for (const std::string& name : sysfs::entries(folder)) {
      auto function = function_behind(fmt::format("{}/{}", folder, name));
      if (!function) continue;
      const auto is_known = [&](const NicAt& known) { return known.nic.pci.value() == function->address; };
      if (std::ranges::any_of(nics, is_known)) continue;
      nics.push_back({{printable(name), function->address, function->numa_node}, std::move(function->place)});
    }
  }
  return nics;
}

}  // namespace remuda::probe::pci

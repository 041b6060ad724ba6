#include "probe/nvml/place.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "device/pci_address.h"
#include "probe/sysfs.h"

namespace remuda::probe::nvml {
namespace {

std::string pci_file(const KernelFiles& files, const std::string& pci, const char* name) {
  return fmt::format("{}/bus/pci/devices/{}/{}", files.sys, pci, name);
}

/// "535.104.05": digits and points only, a point within.
bool is_version(const std::string& word) {
  return word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

Reading<std::vector<int>> near_cores(const KernelFiles& files, const std::string& pci) {
  const std::string path = pci_file(files, pci, "local_cpulist");
  const auto text = sysfs::read(path);
  if (!text.has_value()) return text.missing();
  const auto cores = sysfs::index_list(text.value());
  if (!cores || cores->empty()) return Missing{MissingReason::unsupported, fmt::format("{} lists no CPUs", path)};
  return *cores;
}

Reading<int> numa_node(const KernelFiles& files, const std::string& pci) {
  const std::string path = pci_file(files, pci, "numa_node");
  auto node = sysfs::to_int(sysfs::read_integer(path, -1, 65535));
  if (node.has_value() && node.value() < 0)
    return Missing{MissingReason::unsupported, fmt::format("the kernel assigns no NUMA node to {}", pci)};
  return node;
}

Reading<bool> is_fabric_switch(const KernelFiles& files, const std::string& pci) {
  const auto vendor = sysfs::read(pci_file(files, pci, "vendor"));
  return sysfs::map(sysfs::read(pci_file(files, pci, "class")), [&](const std::string& device_class) {
    return device_class.starts_with("0x0680") && vendor.value_or("") == "0x10de";
  });
}

Reading<std::string> module_version(const KernelFiles& files) {
  auto version = sysfs::read_word(files.sys + "/module/nvidia/version");
  if (version.has_value()) return version;
  const auto text = sysfs::read(files.proc + "/driver/nvidia/version");
  const std::string line = text.value_or("").substr(0, text.value_or("").find('\n'));
  for (const std::string& word : split(line, ' '))
    if (is_version(word)) return word;
  return version;
}

std::vector<std::string> driven_addresses(const KernelFiles& files) {
  std::vector<std::string> addresses;
  for (const std::string& name : sysfs::entries(files.proc + "/driver/nvidia/gpus"))
    if (const auto address = pci_address(name)) addresses.push_back(*address);
  std::ranges::sort(addresses);
  return addresses;
}

}  // namespace remuda::probe::nvml

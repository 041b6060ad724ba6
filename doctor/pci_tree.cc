#include "doctor/pci_tree.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "device/pci_address.h"

namespace remuda::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConfigBytes = 4096;
constexpr size_t kFirstExtended = 0x100;
constexpr uint32_t kAcs = 0x000d;
constexpr uint32_t kRedirectBits = 0x4 | 0x8 | 0x20;

uint32_t word_at(std::span<const unsigned char> config, size_t at, size_t bytes) {
  uint32_t word = 0;
  for (size_t i = 0; i < bytes; ++i) word |= static_cast<uint32_t>(config[at + i]) << (8 * i);
  return word;
}

Reading<std::string> bound_driver(const std::string& device) {
  std::error_code error;
  if (!fs::exists(device, error)) return Missing{MissingReason::unsupported, "the kernel shows no such PCI device"};
  const fs::path target = fs::read_symlink(device + "/driver", error);
  return error ? std::string() : printable(target.filename().string());
}

/// The kinds of a group are DMA and DMA-FQ (translated), identity (not), and others for devices assigned to a virtual
/// machine or program.
Reading<bool> iommu_translates(const std::string& device) {
  std::error_code error;
  if (!fs::exists(device + "/iommu_group", error)) return false;
  const auto kind = read_text(device + "/iommu_group/type", 64);
  if (!kind) return Missing{MissingReason::unsupported, "this kernel does not report what the IOMMU does"};
  return kind->starts_with("DMA");
}

Reading<bool> bridge_redirects(const std::string& device) {
  const auto config = read_text(device + "/config", kConfigBytes);
  if (!config) return Missing{MissingReason::denied, config.error().message};
  return acs_redirects({reinterpret_cast<const unsigned char*>(config->data()), config->size()});
}

Reading<std::vector<std::string>> redirecting_bridges(const std::string& root, const std::string& device) {
  std::error_code error;
  const fs::path path = fs::canonical(device, error);
  if (error) return Missing{MissingReason::unsupported, "the kernel shows no such PCI device"};
  std::vector<std::string> found;
  for (const std::string& bridge : switches_above(path.string())) {
    const Reading<bool> redirects = bridge_redirects(fmt::format("{}/sys/bus/pci/devices/{}", root, bridge));
    if (!redirects.has_value()) return redirects.missing();
    if (redirects.value()) found.push_back(bridge);
  }
  return found;
}

}  // namespace

Reading<bool> acs_redirects(std::span<const unsigned char> config) {
  constexpr size_t kMostCapabilities = (kConfigBytes - kFirstExtended) / 4;
  if (config.size() < kConfigBytes) {
    if (config.size() > 64) return false;  // a conventional PCI bridge: it has no extended space at all
    return Missing{MissingReason::denied, "only root may read what PCI bridges are set to"};
  }
  size_t at = kFirstExtended;
  for (size_t i = 0; i < kMostCapabilities && at >= kFirstExtended && at + 8 <= config.size(); ++i) {
    const uint32_t header = word_at(config, at, 4);
    if ((header & 0xffff) == kAcs) return (word_at(config, at + 6, 2) & kRedirectBits) != 0;
    at = header >> 20;
  }
  return false;
}

std::vector<std::string> switches_above(std::string_view path) {
  std::vector<std::string> bridges;
  for (const std::string& part : split(path, '/'))
    if (const auto address = pci_address(part); address && *address == part) bridges.push_back(part);
  if (bridges.size() < 3) return {};
  return {bridges.begin() + 1, bridges.end() - 1};
}

GpuSlot read_slot(const std::string& root, const std::string& pci) {
  const std::string device = fmt::format("{}/sys/bus/pci/devices/{}", root, pci);
  return {.pci = pci,
          .bound_driver = bound_driver(device),
          .iommu_translates = iommu_translates(device),
          .acs_redirects = redirecting_bridges(root, device)};
}

}  // namespace remuda::doctor

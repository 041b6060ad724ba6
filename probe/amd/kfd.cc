#include "probe/amd/kfd.h"

#include <fmt/format.h>
#include <limits>

#include "base/number.h"
#include "base/text.h"
#include "device/pci_address.h"
#include "probe/sysfs.h"

namespace remuda::probe::amd {
namespace {

constexpr size_t kMaxProperties = 512;
constexpr uint64_t kMaxInt = std::numeric_limits<int>::max();

Properties read_properties(const std::string& folder) {
  return parse_properties(sysfs::read(folder + "/properties").value_or(""));
}

void read_links(const std::string& folder, std::vector<KfdLink>& links) {
  for (const int i : sysfs::numbered(folder, "")) {
    const Properties properties = read_properties(fmt::format("{}/{}", folder, i));
    const auto to = find(properties, "node_to", kMaxInt);
    if (!to) continue;
    links.push_back({static_cast<int>(*to), find(properties, "type"), find(properties, "weight", kMaxInt),
                     find(properties, "min_bandwidth").value_or(0), find(properties, "max_bandwidth").value_or(0)});
  }
}

/// Heaps 1 and 2 are the two kinds of a GPU's own memory: the part that the host can address, and the part that it
/// cannot.
void read_memory(const std::string& folder, KfdNode& node) {
  constexpr int64_t kMost = int64_t{1} << 50;
  for (const int i : sysfs::numbered(folder, "")) {
    const std::string bank = fmt::format("{}/{}", folder, i);
    const Properties properties = read_properties(bank);
    const auto heap = find(properties, "heap_type"), size = find(properties, "size_in_bytes", kMost);
    if ((heap != 1 && heap != 2) || !size || *size == 0) continue;
    node.memory_bytes = node.memory_bytes.value_or(0) + static_cast<int64_t>(*size);
    const auto used = sysfs::read_integer(bank + "/used_memory", 0, kMost);
    if (used.has_value()) node.memory_used_bytes = node.memory_used_bytes.value_or(0) + used.value();
  }
}

KfdNode read_node(const std::string& folder, int number, std::string_view properties) {
  KfdNode node;
  node.number = number;
  node.properties = parse_properties(properties);
  if (!node.is_gpu()) return node;
  node.gpu_id = static_cast<uint64_t>(sysfs::read_integer(folder + "/gpu_id").value_or(0));
  read_links(folder + "/io_links", node.links);
  read_links(folder + "/p2p_links", node.links);
  read_memory(folder + "/mem_banks", node);
  return node;
}

}  // namespace

Properties parse_properties(std::string_view text) {
  Properties properties;
  while (!text.empty() && properties.size() < kMaxProperties) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos) continue;
    if (const auto value = parse_number<uint64_t>(line.substr(space + 1)))
      properties.emplace(line.substr(0, space), *value);
  }
  return properties;
}

std::optional<uint64_t> find(const Properties& properties, std::string_view name, uint64_t most) {
  const auto found = properties.find(name);
  return found == properties.end() || found->second > most ? std::nullopt : std::optional(found->second);
}

/// location_id is bus << 8 | device << 3 | function; newer drivers put the number of a partition into its top bits,
/// older ones into the function.
std::optional<std::string> KfdNode::pci() const {
  const auto location = find(properties, "location_id", UINT32_MAX), domain = find(properties, "domain", UINT32_MAX);
  if (location.value_or(0) == 0) return std::nullopt;
  return pci_address(fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain.value_or(0), *location >> 8 & 0xff,
                                 *location >> 3 & 0x1f, *location & 7));
}

std::optional<std::string> KfdNode::target() const {
  const auto version = find(properties, "gfx_target_version", kMaxInt);
  if (version.value_or(0) == 0) return std::nullopt;
  return fmt::format("gfx{}{}{:x}", *version / 10000, *version / 100 % 100, *version % 100);
}

std::optional<int> KfdNode::multiprocessors() const {
  const auto simds = find(properties, "simd_count", kMaxInt), per_unit = find(properties, "simd_per_cu", kMaxInt);
  if (!simds || per_unit.value_or(0) == 0) return std::nullopt;
  return static_cast<int>(*simds / *per_unit);
}

Kfd read_kfd(const std::string& sysfs) {
  const std::string all = sysfs + "/class/kfd/kfd/topology/nodes";
  Kfd kfd;
  int unread = 0;
  std::string why;
  const std::vector<int> numbers = sysfs::numbered(all, "");
  for (const int i : numbers) {
    const std::string folder = fmt::format("{}/{}", all, i);
    const auto properties = sysfs::read(folder + "/properties");
    if (properties.has_value())
      kfd.nodes.push_back(read_node(folder, i, properties.value()));
    else if (++unread == 1)
      why = properties.missing().detail;
  }
  if (unread > 0)
    kfd.reason = fmt::format("{} of the driver's {} nodes cannot be read: {}", unread, numbers.size(), why);
  return kfd;
}

}  // namespace remuda::probe::amd

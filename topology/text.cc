#include "topology/text.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/characters.h"
#include "base/table.h"
#include "base/text.h"
#include "topology/label.h"

namespace remuda::topology {
namespace {

constexpr size_t kModelWidth = 32, kCoresWidth = 24;

std::string cores_cell(const Device& device) {
  return device.cores.has_value() ? shortened(index_ranges(device.cores.value()), kCoresWidth) : "?";
}

std::string numa_cell(const Reading<int>& node) { return node.has_value() ? std::to_string(node.value()) : "?"; }

std::vector<std::string> device_labels(const Matrix& matrix) {
  std::vector<std::string> labels;
  for (const Device* device : matrix.devices) labels.push_back(device->label());
  return labels;
}

/// The label of each network card and device of the matrix, in their orders.
std::vector<std::vector<std::string>> nic_labels(const Inventory& inventory, const Matrix& matrix) {
  std::unordered_map<std::string_view, size_t> nics, devices;
  for (size_t i = 0; i < inventory.nics.size(); ++i) nics.emplace(inventory.nics[i].name, i);
  for (size_t i = 0; i < matrix.devices.size(); ++i) devices.emplace(matrix.devices[i]->id, i);
  std::vector labels(nics.size(), std::vector<std::string>(devices.size(), "?"));
  for (const Link& link : inventory.links)
    for (const auto& [near, far] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)}) {
      const auto nic = nics.find(*near);
      const auto device = devices.find(*far);
      if (nic != nics.end() && device != devices.end()) labels[nic->second][device->second] = link_label(link);
    }
  return labels;
}

bool says_anything(const std::vector<std::string>& labels) {
  return std::any_of(labels.begin(), labels.end(), [](const std::string& label) { return label != "?"; });
}

std::string label_table(const Inventory& inventory, const Matrix& matrix,
                        const std::vector<std::vector<std::string>>& nics) {
  std::vector<std::string> header = device_labels(matrix);
  header.insert(header.begin(), "");
  header.insert(header.end(), {"CPUS", "NUMA", "MODEL"});
  Table table(header);
  for (size_t i = 0; i < matrix.devices.size(); ++i) {
    const Device& device = *matrix.devices[i];
    std::vector<std::string> row{device.label()};
    for (const auto& pair : matrix.pairs[i]) row.push_back(printable(pair.label));
    row.insert(row.end(),
               {cores_cell(device), numa_cell(device.numa_node), shortened(printable(device.model), kModelWidth)});
    table.add(std::move(row));
  }
  for (size_t i = 0; i < nics.size(); ++i) {
    if (!says_anything(nics[i])) continue;
    std::vector<std::string> row{printable(inventory.nics[i].name)};
    for (const std::string& label : nics[i]) row.push_back(printable(label));
    row.insert(row.end(), {"", numa_cell(inventory.nics[i].numa_node), ""});
    table.add(std::move(row));
  }
  return table.text();
}

std::string speed_cell(const std::optional<PairSpeed>& speed, const char* otherwise) {
  if (!speed) return fmt::format("{} ", otherwise);
  return fmt::format("{:.1f}{}", speed->gbps, speed->measured ? '*' : ' ');
}

std::string speed_table(const Matrix& matrix) {
  const size_t n = matrix.devices.size();
  std::vector<std::string> header = device_labels(matrix);
  header.insert(header.begin(), "GB/s");
  std::vector<std::vector<std::string>> columns(n, std::vector<std::string>(n));
  for (size_t j = 0; j < n; ++j) {
    size_t width = header[j + 1].size();
    for (size_t i = 0; i < n; ++i) {
      columns[j][i] = speed_cell(matrix.pairs[i][j].speed, i == j ? "-" : "?");
      width = std::max(width, columns[j][i].size());
    }
    for (std::string& cell : columns[j]) cell.insert(0, width - cell.size(), ' ');
    header[j + 1].insert(0, width - header[j + 1].size(), ' ');
  }
  Table table(header);
  for (size_t i = 0; i < n; ++i) {
    std::vector<std::string> row{matrix.devices[i]->label()};
    for (size_t j = 0; j < n; ++j) row.push_back(columns[j][i]);
    table.add(std::move(row));
  }
  return table.text();
}

bool is_counted(const std::string& word, std::string_view prefix) {
  return word.starts_with(prefix) && word.size() > prefix.size() &&
         word.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

std::string legend(const std::set<std::string>& words) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kMeanings{
      {{"PSB", "both on one board"},
       {"PIX", "at most one PCIe switch between"},
       {"PXB", "several PCIe switches between"},
       {"PHB", "a PCIe host bridge between"},
       {"NODE", "several host bridges, or the memory, of one NUMA node between"},
       {"SYS", "across NUMA nodes"},
       {"PCIE", "over PCIe; the source says no more"},
       {"NVLINK", "NVLink links; their number is not known"},
       {"XGMI", "xGMI links; their number is not known"}}};
  const auto any = [&](const char* prefix) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return is_counted(word, prefix); });
  };
  std::string text;
  if (any("NV")) text += "  NVn     n NVLink links\n";
  if (any("XG")) text += "  XGn     n xGMI links\n";
  for (const auto& [word, meaning] : kMeanings)
    if (words.contains(word)) text += fmt::format("  {:<6}  {}\n", word, meaning);
  if (words.contains("?")) text += "  ?       not known\n";
  return text;
}

bool any_measured(const Matrix& matrix) {
  for (const auto& row : matrix.pairs)
    for (const auto& pair : row)
      if (pair.speed && pair.speed->measured) return true;
  return false;
}

std::string notes(const Inventory& inventory, const Matrix& matrix) {
  std::string text;
  for (const Device* device : matrix.devices)
    if (device->partitioned.value_or(false))
      text += fmt::format("note: {} is cut into partitions; they have no links\n", device->label());
  for (const std::string& note : inventory.notes) text += fmt::format("note: {}\n", printable(note));
  return text;
}

std::string slowest_text(const Matrix& matrix, const Bottleneck& bottleneck) {
  const auto& speed = matrix.pairs[bottleneck.a][bottleneck.b].speed;
  return fmt::format("{:.1f} GB/s at {}-{} ({})", bottleneck.gbps, matrix.devices[bottleneck.a]->label(),
                     matrix.devices[bottleneck.b]->label(), speed && speed->measured ? "measured" : "assumed");
}

std::optional<Ring> best_ring(const Matrix& matrix) {
  const size_t n = matrix.devices.size();
  return n > RingTable::kMaxDevices ? std::nullopt : RingTable(matrix.speeds()).ring((RingTable::Mask{1} << n) - 1);
}

std::string best_ring_text(const Matrix& matrix) {
  if (matrix.devices.size() > RingTable::kMaxDevices)
    return fmt::format("not searched for; best rings are found for up to {} devices", RingTable::kMaxDevices);
  const auto ring = best_ring(matrix);
  return ring ? slowest_text(matrix, ring->bottleneck) : "none; no ring of links of known speed joins them";
}

}  // namespace

std::string topology_text(const Inventory& inventory, const Matrix& matrix) {
  const auto nics = nic_labels(inventory, matrix);
  std::set<std::string> words;
  for (const auto& row : matrix.pairs)
    for (const auto& pair : row) words.insert(pair.label);
  for (const auto& row : nics)
    if (says_anything(row)) words.insert(row.begin(), row.end());
  std::string text = label_table(inventory, matrix, nics);
  if (matrix.devices.size() > 1) {
    text += "\n" + speed_table(matrix) + "\n" + legend(words);
    text += any_measured(matrix) ? "  *       measured; other figures are assumed\n"
                                 : "  GB/s    assumed from kind and number of links; remuda bench links measures\n";
  }
  const std::string remarks = notes(inventory, matrix);
  return remarks.empty() ? text : text + "\n" + remarks;
}

std::string ring_text(const Matrix& matrix, const std::string& who) {
  if (matrix.devices.size() < 2) return fmt::format("{} needs no link\n", who);
  return fmt::format("ring bottleneck of {}: {}\n", who, best_ring_text(matrix));
}

std::string ring_order_text(const Matrix& matrix) {
  const auto ring = best_ring(matrix);
  if (!ring || ring->order.size() < 3) return "";
  std::string text = "ring order:";
  for (const size_t device : ring->order) text += " " + matrix.devices[device]->label();
  return text + "\n";
}

std::string tree_text(const Matrix& matrix, const std::string& who) {
  if (matrix.devices.size() < 2) return "";
  const auto tree = best_tree(matrix.speeds());
  return fmt::format("tree bottleneck of {}: {}\n", who,
                     tree ? slowest_text(matrix, *tree) : "none; links of known speed do not join them");
}

}  // namespace remuda::topology

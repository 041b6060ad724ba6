#include "recorded/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/text.h"
#include "device/pci_address.h"

namespace remuda::recorded {
namespace {

constexpr size_t kLongestLabel = 32;
constexpr size_t kLongestWord = 60;
constexpr size_t kLongestHost = 200;
constexpr int kMostCores = 8192;  // as many as Linux can have

Missing says(std::string_view text) {
  return {MissingReason::unsupported, fmt::format("the source says {}", brief(text, kLongestWord))};
}

/// "4" or "4-7"; nothing when it is neither.
std::optional<std::pair<int, int>> core_range(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto first = whole_number(text.substr(0, dash));
  const auto last = dash == text.size() ? first : whole_number(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= kMostCores) return std::nullopt;
  return std::pair(*first, *last);
}

void add_columns(const Matrix& matrix, size_t row, Device& device) {
  if (const auto cores = matrix.beside(row, Column::cores)) device.cores = cores_reading(*cores);
  const Column numa = matrix.has(Column::cpu_node) ? Column::cpu_node : Column::numa;
  if (const auto node = matrix.beside(row, numa)) device.numa_node = numa_reading(*node);
  const auto address = pci_address(matrix.beside(row, Column::pci).value_or(""));
  if (address) device.pci = *address;
}

bool read_counted(std::string_view word, std::string_view prefix, Fabric fabric, Link& link) {
  constexpr int kMostLinks = 999;
  if (!word.starts_with(prefix)) return false;
  const auto count = whole_number(word.substr(prefix.size()));
  if (!count || *count < 1 || *count > kMostLinks) return false;
  link.fabric = fabric;
  link.fabric_links = *count;
  return true;
}

/// "XGMI/15": the kind of a link and the driver's distance.
bool read_weighted(std::string_view word, Link& link) {
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos) return false;
  const auto weight = whole_number(word.substr(slash + 1));
  const std::string_view kind = word.substr(0, slash) == "PCIe" ? "PCIE" : word.substr(0, slash);
  if (!weight || kind.find('/') != std::string_view::npos || !read_link_word(kind, link)) return false;
  link.weight = *weight;
  link.label = brief(word, kLongestLabel);
  return true;
}

Missing contradiction(const PairWords& pair) {
  return {MissingReason::unsupported,
          fmt::format("the source says {} in one direction and {} in the other", brief(pair.word, kLongestLabel),
                      brief(pair.backward, kLongestLabel))};
}

bool is_number_like(std::string_view word) { return word[0] >= '0' && word[0] <= '9'; }

}  // namespace

Reading<int> numa_reading(std::string_view text) {
  text = trim(text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (text.empty()) return Missing{MissingReason::unsupported, "the source leaves it blank"};
  if (const auto node = whole_number(text)) return *node;
  if (is_number_like(text))
    return Missing{MissingReason::unsupported,
                   fmt::format("the source names several nodes, {}", brief(text, kLongestWord))};
  return says(text);
}

Reading<std::vector<int>> cores_reading(std::string_view text) {
  if (trim(text).empty())
    return Missing{MissingReason::unsupported, "the source's list is empty, as it is where no CPU near it may be used"};
  std::vector<int> cores;
  for (const std::string& part : split(trim(text), ',')) {
    const auto range = core_range(part);
    if (!range || (!cores.empty() && range->first <= cores.back())) return says(text);
    for (int core = range->first; core <= range->second; ++core) cores.push_back(core);
  }
  return cores;
}

Machine machine_of(const Matrix& matrix, const char* vendor) {
  Machine machine;
  Inventory& inventory = machine.inventory;
  for (size_t i = 0; i < matrix.names.size(); ++i) {
    machine.is_device.push_back(is_gpu_name(matrix.names[i]));
    if (!machine.is_device[i]) {
      inventory.nics.push_back({.name = matrix.names[i], .pci = {}, .numa_node = {}});
      machine.ids.push_back(matrix.names[i]);
      continue;
    }
    Device device;
    device.kind = DeviceKind::gpu;
    device.vendor = vendor;
    device.index = static_cast<int>(inventory.devices.size());
    add_columns(matrix, i, device);
    device.id = device.pci.value_or(device.label());
    if (inventory.find(device.id)) {
      add_note(fmt::format("two GPUs have the PCI address {}", device.id), inventory);
      device.pci = Missing{MissingReason::unsupported, "the source gives another GPU's address"};
      device.id = device.label();
    }
    machine.ids.push_back(device.id);
    inventory.devices.push_back(std::move(device));
  }
  for (const std::string& note : matrix.notes) add_note(note, inventory);
  return machine;
}

bool read_link_word(std::string_view word, Link& link) {
  if (const auto path = from_word<Path>(word)) return link.path = *path, true;
  if (word == "XGMI") return link.fabric = Fabric::xgmi, true;
  return read_counted(word, "NV", Fabric::nvlink, link) || read_counted(word, "XG", Fabric::xgmi, link) ||
         read_weighted(word, link);
}

void add_links(const Matrix& matrix, const Reading<Fabric>& otherwise, Machine& machine) {
  std::vector<std::string> contradicted;
  std::set<std::string> unknown;
  for (size_t a = 0; a < matrix.names.size(); ++a)
    for (size_t b = a + 1; b < matrix.names.size(); ++b) {
      const PairWords pair = pair_words(matrix, a, b);
      if (pair.word.empty() || is_number_like(pair.word)) continue;
      Link link{.a = machine.ids[a], .b = machine.ids[b]};
      if (!pair.backward.empty()) {
        contradicted.push_back(fmt::format("{}-{}", matrix.names[a], matrix.names[b]));
        link.path = contradiction(pair);
      } else if (!read_link_word(pair.word, link)) {
        link.label = brief(pair.word, kLongestLabel);
        unknown.insert(link.label);
      } else if (!link.fabric.was_read() && machine.is_device[a] && machine.is_device[b]) {
        link.fabric = otherwise;
      }
      machine.inventory.links.push_back(std::move(link));
    }
  if (!contradicted.empty())
    add_note(fmt::format("the two directions differ for {}", some_of(contradicted)), machine.inventory);
  if (!unknown.empty())
    add_note(fmt::format("unknown words for a link: {}", some_of({unknown.begin(), unknown.end()})), machine.inventory);
}

void finish(const Text& text, std::string_view kind, Inventory& inventory) {
  const size_t slash = text.where.rfind('/');
  std::string name = slash == std::string::npos ? text.where : text.where.substr(slash + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  inventory.host = brief(name, kLongestHost);
  inventory.source = text.comment.empty() ? std::string(kind) : fmt::format("{}: {}", kind, text.comment);
}

void add_note(std::string note, Inventory& inventory) {
  if (std::ranges::find(inventory.notes, note) == inventory.notes.end()) inventory.notes.push_back(std::move(note));
}

}  // namespace remuda::recorded

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "recorded/formats.h"
#include "recorded/machine.h"

namespace remuda::recorded {
namespace {

constexpr const char* kMatrixVendor = "NVIDIA";
/// NVML_NVLINK_MAX_LINKS of nvml.h: a GPU with more than these to its peers reaches them through a switch.
constexpr int kMostLinksOfOneGpu = 36;

struct AccessWord {
  const char* word;
  PeerAccess access;
};
constexpr std::array kStatuses{AccessWord{"OK", PeerAccess::ok},       AccessWord{"CNS", PeerAccess::chipset},
                               AccessWord{"GNS", PeerAccess::gpu},     AccessWord{"TNS", PeerAccess::topology},
                               AccessWord{"DR", PeerAccess::disabled}, AccessWord{"NS", PeerAccess::unsupported},
                               AccessWord{"U", PeerAccess::unknown}};

std::optional<PeerAccess> peer_access(std::string_view word) {
  const auto found = std::ranges::find_if(kStatuses, [&](const AccessWord& status) { return word == status.word; });
  return found == kStatuses.end() ? std::nullopt : std::optional(found->access);
}

/// What is the case for at least one pair.
template <typename Predicate>
bool any_pair(const Matrix& matrix, Predicate predicate) {
  for (size_t a = 0; a < matrix.names.size(); ++a)
    for (size_t b = a + 1; b < matrix.names.size(); ++b)
      if (predicate(pair_words(matrix, a, b))) return true;
  return false;
}

bool is_peer_matrix(const Matrix& matrix) {
  return any_pair(matrix, [](const PairWords& pair) { return peer_access(pair.word).has_value(); });
}

/// Whether the block is about reading or writing ("-p2p r", "-p2p rw"), not about atomics, NVLink or properties.
bool is_about_access(const Matrix& matrix) {
  const size_t option = matrix.title.find("-p2p");
  if (option == std::string::npos) return true;
  const std::vector<Word> found = words(std::string_view(matrix.title).substr(option));
  return found.size() < 2 || found[1].text.find_first_of("rw") != std::string_view::npos;
}

/// The legend calls NIC0 by its name: "NIC0: mlx5_0".
void name_cards(const Text& text, Matrix& matrix) {
  for (const std::string& line : text.lines) {
    const std::vector<Word> found = words(line);
    if (found.size() != 2 || !found[0].text.ends_with(':') || matrix.find(found[1].text)) continue;
    const auto card = matrix.find(found[0].text.substr(0, found[0].text.size() - 1));
    const bool is_card = card && !is_gpu_name(matrix.names[*card]);
    if (is_card && is_name(found[1].text) && !is_gpu_name(found[1].text)) matrix.names[*card] = found[1].text;
  }
}

bool has_line(const Text& text, std::string_view first_word) {
  return std::ranges::any_of(text.lines, [&](const std::string& line) { return trim(line).starts_with(first_word); });
}

/// What a pair's PCIe class says of NVLink: there is none, if this matrix reports NVLink at all.
Reading<Fabric> fabric_beside_paths(const Text& text, const Matrix& matrix) {
  const bool reports_nvlink = any_pair(matrix, [](const PairWords& pair) { return pair.word.starts_with("NV"); });
  if (reports_nvlink || has_line(text, "NV#")) return Fabric::none;
  if (has_line(text, "Legend:")) return Missing{MissingReason::unsupported, "nvidia-smi topo -mp hides NVLink"};
  return {};
}

/// More links than a GPU has lead through a switch; of fewer it cannot be known from here.
void find_switches(Inventory& inventory) {
  const auto total = [&](const std::string& id) {
    int sum = 0;
    for (const Link& link : inventory.links)
      if (link.a == id || link.b == id) sum += link.fabric_links.value_or(0);
    return sum;
  };
  for (const Device& device : inventory.devices) {
    if (total(device.id) <= kMostLinksOfOneGpu) continue;
    for (Link& link : inventory.links)
      if ((link.a == device.id || link.b == device.id) && link.fabric_links.has_value()) link.fabric_switched = true;
  }
}

void check_cores(Inventory& inventory) {
  std::vector<std::string> blank;
  for (const Device& device : inventory.devices)
    if (!device.cores.has_value() && device.cores.was_read()) blank.push_back(device.label());
  if (!blank.empty() && blank.size() < inventory.devices.size())
    add_note(fmt::format("the CPU lists of {} are empty or wrong: read inside a set of CPUs, the others may be clipped",
                         some_of(blank)),
             inventory);
}

/// The links of an inventory by their ends; adds those that are not there.
class LinkIndex {
 public:
  explicit LinkIndex(std::vector<Link>& links) : links_(links) {
    for (size_t i = 0; i < links.size(); ++i) at_[std::minmax(links[i].a, links[i].b)] = i;
  }
  Link& get(const std::string& a, const std::string& b) {
    const auto [found, is_new] = at_.try_emplace(std::minmax(a, b), links_.size());
    return is_new ? links_.emplace_back(Link{.a = a, .b = b}) : links_[found->second];
  }

 private:
  std::vector<Link>& links_;
  std::map<std::pair<std::string, std::string>, size_t> at_;
};

/// `ids` are those of the block's names; empty for a device the machine lacks. Of two blocks (reading and writing) the
/// one that forbids counts.
void add_peer_access(const Matrix& matrix, const std::vector<std::string>& ids, Inventory& inventory) {
  LinkIndex links(inventory.links);
  for (size_t a = 0; a < ids.size(); ++a)
    for (size_t b = a + 1; b < ids.size(); ++b) {
      const PairWords pair = pair_words(matrix, a, b);
      const auto access = peer_access(pair.word);
      if (!access || ids[a].empty() || ids[b].empty()) continue;
      Reading<PeerAccess>& reading = links.get(ids[a], ids[b]).peer_access;
      if (!pair.backward.empty() && !reading.has_value())
        reading = Missing{MissingReason::unsupported, "the source says another thing in each direction"};
      else if (reading.value_or(PeerAccess::ok) == PeerAccess::ok)
        reading = *access;
    }
}

/// The ids of a block's names in a machine of those of `names`.
std::vector<std::string> ids_of(const Matrix& block, const Matrix& matrix, const Machine& machine) {
  std::vector<std::string> ids;
  for (const std::string& name : block.names) {
    const auto at = matrix.find(name);
    ids.push_back(at && machine.is_device[*at] ? machine.ids[*at] : "");
  }
  return ids;
}

void note_rest(const std::vector<Matrix>& matrices, Inventory& inventory) {
  const auto is_other = [](const Matrix& matrix) { return is_peer_matrix(matrix) && !is_about_access(matrix); };
  if (std::ranges::any_of(matrices, is_other)) add_note("of topo -p2p only r and w are read", inventory);
  const auto links = std::ranges::count_if(matrices, [](const Matrix& matrix) { return !is_peer_matrix(matrix); });
  if (links > 1) add_note("the source holds several matrices of links; the first is read", inventory);
}

}  // namespace

Result<Inventory> import_smi_matrix(const Text& text, std::vector<Matrix> matrices) {
  const auto found = std::ranges::find_if_not(matrices, is_peer_matrix);
  const bool has_links = found != matrices.end();
  Matrix& matrix = has_links ? *found : matrices.front();
  name_cards(text, matrix);
  Machine machine = machine_of(matrix, kMatrixVendor);
  if (has_links) add_links(matrix, fabric_beside_paths(text, matrix), machine);
  Inventory& inventory = machine.inventory;
  for (const Matrix& block : matrices)
    if (is_peer_matrix(block) && is_about_access(block)) {
      add_peer_access(block, ids_of(block, matrix, machine), inventory);
      for (const std::string& note : block.notes) add_note(note, inventory);
    }
  find_switches(inventory);
  check_cores(inventory);
  note_rest(matrices, inventory);
  finish(text, has_links ? "nvidia-smi topo -m" : "nvidia-smi topo -p2p", inventory);
  return std::move(inventory);
}

}  // namespace remuda::recorded

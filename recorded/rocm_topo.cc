#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "recorded/formats.h"
#include "recorded/machine.h"

namespace remuda::recorded {
namespace {

enum class Block { weight, hops, type, access };
struct Title {
  const char* words;
  Block block;
};
constexpr std::array kTitles{
    Title{"Weight between two GPUs", Block::weight}, Title{"Hops between two GPUs", Block::hops},
    Title{"Link Type between two GPUs", Block::type}, Title{"accessibility between two GPUs", Block::access}};
constexpr std::string_view kTopology = "(Topology) Numa";
constexpr int kMostGpus = 256;

std::optional<Block> block_of(const Matrix& matrix) {
  for (const auto& [words, block] : kTitles)
    if (matrix.title.find(words) != std::string::npos) return block;
  return std::nullopt;
}

/// "GPU[3] : (Topology) Numa Node: 1"
struct NumaLine {
  int gpu = 0;
  bool is_affinity = false;  ///< "Numa Affinity", which counts where there is no "Numa Node"
  std::string value;
};
std::optional<NumaLine> numa_line(std::string_view line) {
  const size_t end = line.find(']'), what = line.find(kTopology), colon = line.rfind(':');
  if (!line.starts_with("GPU[") || end > what || colon < what || what == std::string_view::npos) return std::nullopt;
  const auto gpu = whole_number(line.substr(4, end - 4));
  if (!gpu || *gpu >= kMostGpus) return std::nullopt;
  return NumaLine{*gpu, line.substr(what).starts_with("(Topology) Numa Affinity"),
                  std::string(trim(line.substr(colon + 1)))};
}

std::vector<NumaLine> numa_lines(const Text& text) {
  std::vector<NumaLine> found;
  for (size_t i = 0; i < text.lines.size(); ++i) {
    const bool cut = text.cut && i + 1 == text.lines.size();
    if (auto line = numa_line(text.lines[i]); line && !cut) found.push_back(std::move(*line));
  }
  return found;
}

/// The block all devices stand in: the first one; of a text without one, the GPUs of the NUMA lines.
Matrix devices_of(const std::vector<Matrix>& matrices, const std::vector<NumaLine>& lines) {
  if (!matrices.empty()) return matrices.front();
  Matrix matrix;
  int last = -1;
  for (const NumaLine& line : lines) last = std::max(last, line.gpu);
  for (int gpu = 0; gpu <= last; ++gpu) matrix.names.push_back(fmt::format("GPU{}", gpu));
  matrix.rows.resize(matrix.names.size());
  return matrix;
}

void read_numbers(const PairWords& pair, Reading<int>& reading) {
  const auto number = whole_number(pair.word);
  if (!pair.backward.empty())
    reading = Missing{MissingReason::unsupported, "the source says one thing in each direction"};
  else if (number)
    reading = *number;
}

void read_cell(Block block, const PairWords& pair, Link& link, Inventory& inventory) {
  if (block == Block::weight) return read_numbers(pair, link.weight);
  if (block == Block::hops) return read_numbers(pair, link.hops);
  if (block == Block::access) {
    if (pair.backward.empty() && pair.word == "True") link.peer_access = PeerAccess::ok;
    if (pair.backward.empty() && pair.word == "False") link.peer_access = PeerAccess::unsupported;
    return;
  }
  if (!pair.backward.empty()) {
    add_note(fmt::format("the two directions differ for {}-{}", link.a, link.b), inventory);
  } else if (!read_link_word(pair.word, link)) {
    link.label = brief(pair.word, 32);
    add_note(fmt::format("unknown word for a link: {}", link.label), inventory);
  } else if (!link.fabric.was_read()) {
    link.fabric = Fabric::none;
  }
}

/// Reads the cell of each pair in each block that knows both devices.
void add_pairs(const Matrix& devices, const std::vector<Matrix>& matrices, Machine& machine) {
  for (size_t a = 0; a < devices.names.size(); ++a)
    for (size_t b = a + 1; b < devices.names.size(); ++b) {
      Link link{.a = machine.ids[a], .b = machine.ids[b]};
      const Link nothing = link;
      for (const Matrix& matrix : matrices) {
        const auto row = matrix.find(devices.names[a]), column = matrix.find(devices.names[b]);
        const auto block = block_of(matrix);
        const PairWords pair = block && row && column ? pair_words(matrix, *row, *column) : PairWords{};
        if (!pair.word.empty()) read_cell(*block, pair, link, machine.inventory);
      }
      if (link != nothing) machine.inventory.links.push_back(std::move(link));
    }
}

}  // namespace

bool is_rocm_topo(const Text& text, const std::vector<Matrix>& matrices) {
  return std::ranges::any_of(matrices, [](const Matrix& matrix) { return block_of(matrix).has_value(); }) ||
         std::ranges::any_of(text.lines, [](const std::string& line) { return numa_line(line).has_value(); });
}

Result<Inventory> import_rocm_topo(const Text& text, const std::vector<Matrix>& matrices) {
  const std::vector<NumaLine> lines = numa_lines(text);
  const Matrix devices = devices_of(matrices, lines);
  if (devices.names.empty()) return usage_error(fmt::format("{} ends before it names a GPU", text.where));
  Machine machine = machine_of(devices, "AMD");
  Inventory& inventory = machine.inventory;
  for (const Matrix& matrix : matrices)
    for (const std::string& note : matrix.notes) add_note(note, inventory);
  add_pairs(devices, matrices, machine);
  for (const NumaLine& line : lines) {
    const auto gpu = devices.find(fmt::format("GPU{}", line.gpu));
    if (!gpu || !machine.is_device[*gpu]) continue;
    Reading<int>& node = std::ranges::find(inventory.devices, machine.ids[*gpu], &Device::id)->numa_node;
    if (!line.is_affinity || !node.was_read()) node = numa_reading(line.value);
  }
  finish(text, "rocm-smi --showtopo", inventory);
  return std::move(inventory);
}

}  // namespace remuda::recorded

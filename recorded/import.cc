#include "recorded/import.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/file.h"
#include "base/read_all.h"
#include "base/text.h"
#include "recorded/formats.h"

namespace remuda::recorded {
namespace {

using namespace recorded;

constexpr const char* kExpected =
    "expected an inventory, or what nvidia-smi topo -m, nvidia-smi -q -x, rocm-smi --showtopo or NCCL_TOPO_DUMP_FILE "
    "gives";

/// Where XML begins: warnings may be printed before it.
size_t xml_begin(std::string_view text) {
  constexpr size_t kFar = 4096;
  const std::string_view head = text.substr(0, kFar);
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '<') return first;
  return std::min({head.find("<?xml"), head.find("<nvidia_smi_log"), head.find("<system")});
}

Result<Inventory> import_xml(std::string_view xml, std::string_view where) {
  REMUDA_ASSIGN(const Element root, read_xml(xml, where));
  const Text text{.where = std::string(where), .lines = {}, .comment = {}, .cut = false};
  if (root.name == "nvidia_smi_log") return import_smi_xml(text, root);
  if (root.name == "system") return import_rccl_xml(text, root);
  return usage_error(
      fmt::format("{} is XML of another program, with <{}> at its root; {}", where, brief(root.name, 40), kExpected));
}

Result<Inventory> import_text(std::string_view raw, std::string_view where) {
  REMUDA_ASSIGN(const Text text, read_lines(raw, where));
  REMUDA_ASSIGN(const std::vector<Matrix> matrices, read_matrices(text));
  if (is_rocm_topo(text, matrices)) return import_rocm_topo(text, matrices);
  if (matrices.empty()) return usage_error(fmt::format("{} has no rows of a link matrix; {}", where, kExpected));
  if (matrices[0].has(Column::cpu_node)) return import_kfd_matrix(text, matrices[0]);
  if (matrices[0].has(Column::pci)) return import_model_matrix(text, matrices[0]);
  return import_smi_matrix(text, matrices);
}

}  // namespace

Result<Inventory> import_machine(std::string_view text, std::string_view where) {
  const std::string name = printable(where);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return usage_error(fmt::format("{} is empty; {}", name, kExpected));
  if (text[first] == '{') return parse_inventory(text, name);
  if (const size_t xml = xml_begin(text); xml != std::string_view::npos) return import_xml(text.substr(xml), name);
  return import_text(text, name);
}

Result<Inventory> read_machine_file(const std::string& path) {
  REMUDA_ASSIGN(const Fd file, open_for_reading(path));
  REMUDA_ASSIGN(const std::string text, read_all(file.get(), path, kLargestRecording, 0));
  return import_machine(text, path);
}

}  // namespace remuda::recorded

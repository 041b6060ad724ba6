#include "recorded/import.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/read_all.h"
#include "base/text.h"
#include "device/sane.h"
#include "recorded/around_xml.h"
#include "recorded/failure_text.h"
#include "recorded/formats.h"
#include "recorded/machine.h"

namespace remuda::recorded {
namespace {

constexpr const char* kExpected =
    "expected an inventory, or what nvidia-smi topo -m, nvidia-smi -q -x, rocm-smi --showtopo or NCCL_TOPO_DUMP_FILE "
    "gives";

/// What is printed beside a report says what that leaves out.
void note_lines(const std::vector<std::string>& lines, Inventory& inventory) {
  for (const std::string& line : lines) add_note(fmt::format("the source says: {}", line), inventory);
}

Result<Inventory> import_root(const Text& text, const Element& root) {
  if (root.name == "nvidia_smi_log") return import_smi_xml(text, root);
  if (root.name == "system") return import_rccl_xml(text, root);
  return usage_error(fmt::format("{} is XML of another program, with <{}> at its root; {}", text.where,
                                 brief(root.name, 40), kExpected));
}

Result<Inventory> import_xml(const AroundXml& around, std::string_view where) {
  REMUDA_ASSIGN(const Element root, read_xml(around.xml, where));
  const Text text{.where = std::string(where), .lines = {}, .comment = around.comment, .cut = false};
  REMUDA_ASSIGN(Inventory inventory, import_root(text, root));
  note_lines(around.lines, inventory);
  if (around.further > 0)
    add_note(fmt::format("the source holds {} after the first, left unread",
                         counted(static_cast<double>(around.further), "report")),
             inventory);
  return inventory;
}

Result<Inventory> import_matrices(const Text& text) {
  REMUDA_ASSIGN(const std::vector<Matrix> matrices, read_matrices(text));
  if (is_rocm_topo(text, matrices)) return import_rocm_topo(text, matrices);
  if (matrices.empty()) {
    if (const auto failure = failure_in(text))
      return usage_error(fmt::format("{} describes no machine: it says \"{}\"", text.where, *failure));
    return usage_error(fmt::format("{} has no rows of a link matrix; {}", text.where, kExpected));
  }
  if (matrices[0].has(Column::cpu_node)) return import_kfd_matrix(text, matrices[0]);
  if (matrices[0].has(Column::pci)) return import_model_matrix(text, matrices[0]);
  return import_smi_matrix(text, matrices);
}

Result<Inventory> import_text(std::string_view raw, std::string_view where) {
  REMUDA_ASSIGN(const Text text, read_lines(raw, where));
  REMUDA_ASSIGN(Inventory inventory, import_matrices(text));
  constexpr size_t kLongestLine = 300;
  constexpr size_t kMostNotes = 16;
  std::vector<std::string> complaints;
  for (const std::string& line : text.lines)
    if (complaints.size() < kMostNotes && is_complaint(line)) complaints.push_back(brief(trim(line), kLongestLine));
  note_lines(complaints, inventory);
  return inventory;
}

Result<Inventory> import_any(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return usage_error(fmt::format("{} is empty; {}", name, kExpected));
  if (text[first] == '{') return parse_inventory(text, name);
  if (const auto around = find_xml(text)) return import_xml(*around, name);
  return import_text(text, name);
}

}  // namespace

Result<Inventory> import_machine(std::string_view text, std::string_view where) {
  REMUDA_ASSIGN(Inventory inventory, import_any(text, printable(where)));
  make_sane(inventory);
  return inventory;
}

Result<Inventory> read_machine_file(const std::string& path) {
  REMUDA_ASSIGN(const Fd file, open_for_reading(path));
  REMUDA_ASSIGN(const std::string text, read_all(file.get(), path, kLargestRecording, 0));
  return import_machine(text, path);
}

}  // namespace remuda::recorded

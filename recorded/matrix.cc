#include "recorded/matrix.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace remuda::recorded {
namespace {

constexpr size_t kMostNames = 256;
constexpr size_t kMostMatrices = 16;
constexpr size_t kLongestName = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Length of "NV12" or "XG2" at the front of `text`; 0 when it is neither.
size_t counted_links(std::string_view text) {
  if (!text.starts_with("NV") && !text.starts_with("XG")) return 0;
  const size_t end = std::min(text.find_first_not_of("0123456789", 2), text.size());
  return end > 2 ? end : 0;
}

/// Length of the link word at the front of `text`; 0 when there is none.
size_t link_word(std::string_view text) {
  constexpr std::array kWords{"XGMI", "PCIE", "NODE", "PIX", "PXB", "PHB", "SYS", "SOC", "PSB", "X"};
  if (const size_t length = counted_links(text)) return length;
  for (const std::string_view word : kWords)
    if (text.starts_with(word)) return word.size();
  return 0;
}

/// "PIXNODE" and "SYS0-31" are two words whose tab got lost.
std::vector<std::string> unglued(std::string_view word) {
  std::vector<std::string> parts;
  for (std::string_view rest = word; !rest.empty();) {
    const size_t length = link_word(rest);
    if (length == 0 && (parts.empty() || !is_digit(rest[0]))) return {std::string(word)};
    parts.emplace_back(rest.substr(0, length == 0 ? rest.size() : length));
    rest.remove_prefix(parts.back().size());
  }
  return parts;
}

/// The column whose title begins at `next`, which then stands after it. Of its later words any may lack or be cut.
std::optional<Column> take_title(const std::vector<Word>& line, size_t& next) {
  const auto skip = [&](std::string_view whole) {
    if (next < line.size() && whole.starts_with(line[next].text)) ++next;
  };
  const std::string_view word = line[next].text;
  std::optional<Column> column;
  if (word == "CPU") column = Column::cores;
  if (word == "NUMA") column = Column::numa;
  if (word == "CPUNODE") column = Column::cpu_node;
  if (word == "GPU") column = Column::memory_node;
  if (word == "BUSID") column = Column::pci;
  if (!column) return column;
  ++next;
  if (word == "GPU") skip("NUMA"), skip("ID");
  if (word == "CPU" || word == "NUMA") skip("Affinity");
  return column;
}

/// A header names devices, GPUs first, and then columns. A name alone is a row that was cut, if `current` has it.
std::optional<Matrix> read_header(std::string_view text, const Matrix* current) {
  const std::vector<Word> line = words(text);
  if (line.empty() || !is_gpu_name(line[0].text)) return std::nullopt;
  if (line.size() == 1 && current && current->find(line[0].text)) return std::nullopt;
  Matrix matrix;
  std::set<std::string_view> seen;
  for (size_t next = 0; next < line.size();) {
    const Word& word = line[next];
    if (const auto column = take_title(line, next)) {
      matrix.columns.push_back(*column);
      matrix.columns_at.push_back(word.at);
    } else if (!matrix.columns.empty()) {
      matrix.columns.push_back(Column::other);
      matrix.columns_at.push_back(word.at);
      ++next;
    } else if (is_name(word.text) && seen.insert(word.text).second) {
      matrix.names.emplace_back(word.text);
      ++next;
    } else {
      return std::nullopt;
    }
  }
  matrix.rows.resize(matrix.names.size());
  return matrix;
}

struct Field {
  std::string text;
  size_t at;
};

/// The words of a row after its name. Between tabs a blank is a field too; between blanks there is none.
std::vector<Field> fields_of(std::string_view line, const Word& name) {
  std::vector<Field> fields;
  const size_t end_of_name = name.at + name.text.size(), tab = line.find('\t', end_of_name);
  const bool tabs = tab != std::string_view::npos;
  const bool padded = tabs && trim(line.substr(end_of_name, tab - end_of_name)).empty();
  const size_t begin = padded ? tab + 1 : end_of_name;
  for (size_t at = begin; at < line.size();) {
    const size_t end = tabs ? std::min(line.find('\t', at), line.size()) : line.size();
    const std::vector<Word> found = words(line.substr(at, end - at));
    if (found.empty() && tabs) fields.push_back({"", at});
    for (const Word& word : found)
      for (std::string& part : unglued(word.text)) fields.push_back({std::move(part), at + word.at});
    at = end + 1;
  }
  return fields;
}

/// Fields between tabs: a blank one stands before each N/A and before the last column, where it is not a column of its
/// own.
std::vector<std::string> align_tabs(std::vector<std::string> fields, size_t columns) {
  for (size_t i = 0; i + 1 < fields.size() && fields.size() > columns;) {
    if (fields[i].empty() && fields[i + 1] == "N/A")
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  while (fields.size() > columns && fields.back().empty()) fields.pop_back();
  while (fields.size() > columns && columns > 0 && fields[fields.size() - 2].empty()) fields.erase(fields.end() - 2);
  if (fields.size() > columns) fields.clear();
  return fields;
}

/// Fields between blanks: as many as columns, or each just below its title; otherwise it cannot be known which is
/// which.
std::vector<std::string> align_blanks(const std::vector<Field>& fields, const std::vector<size_t>& columns_at) {
  std::vector<std::string> aligned(columns_at.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto below = std::ranges::find(columns_at, fields[i].at);
    if (fields.size() != columns_at.size() && below == columns_at.end()) return {};
    const auto column =
        fields.size() == columns_at.size() ? static_cast<std::ptrdiff_t>(i) : below - columns_at.begin();
    aligned[static_cast<size_t>(column)] = fields[i].text;
  }
  return fields.empty() ? std::vector<std::string>{} : aligned;
}

bool take_row(std::string_view line, bool cut, Matrix& matrix) {
  const std::vector<Word> found = words(line);
  const auto index = found.empty() ? std::nullopt : matrix.find(found[0].text);
  if (!index) return false;
  Matrix::Row& row = matrix.rows[*index];
  if (row.there) return true;
  row.there = true;
  std::vector<Field> fields = fields_of(line, found[0]);
  const bool is_diagonal = fields.size() == *index + 1 && fields.back().text == "X";
  if (cut && !fields.empty() && !is_diagonal && fields.back().text != "N/A") fields.pop_back();
  const size_t cells = std::min(fields.size(), matrix.names.size());
  for (size_t i = 0; i < cells; ++i) row.cells.push_back(fields[i].text);
  fields.erase(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(cells));
  if (line.find('\t', found[0].at) == std::string_view::npos) {
    row.more = align_blanks(fields, matrix.columns_at);
  } else {
    for (const Field& field : fields) row.more.push_back(field.text);
    row.more = align_tabs(std::move(row.more), matrix.columns.size());
  }
  return true;
}

/// The word on the diagonal: X, and in some programs' tables 0 or True.
std::string diagonal_of(const Matrix& matrix) {
  std::string word = "X";
  for (size_t i = matrix.rows.size(); i-- > 0;) {
    const auto& cells = matrix.rows[i].cells;
    if (std::ranges::find(cells, "X") != cells.end()) return "X";
    if (i < cells.size() && (cells[i] == "0" || cells[i] == "True")) word = cells[i];
  }
  return word;
}

bool is_moved(const Matrix::Row& row, size_t index, const std::string& diagonal) {
  for (size_t i = 0; i < row.cells.size(); ++i)
    if (i == index ? row.cells[i] != diagonal : row.cells[i] == "X") return true;
  return false;
}

void check_rows(Matrix& matrix) {
  const std::string diagonal = diagonal_of(matrix);
  std::vector<std::string> missing, missing_cards, moved, cut, bare;
  for (size_t i = 0; i < matrix.rows.size(); ++i) {
    Matrix::Row& row = matrix.rows[i];
    if (!row.there) {
      (is_gpu_name(matrix.names[i]) ? missing : missing_cards).push_back(matrix.names[i]);
    } else if (is_moved(row, i, diagonal)) {
      row = {};
      moved.push_back(matrix.names[i]);
    } else if (row.cells.size() < matrix.names.size()) {
      cut.push_back(matrix.names[i]);
    } else if (row.more.empty() && !matrix.columns.empty() && is_gpu_name(matrix.names[i])) {
      bare.push_back(matrix.names[i]);
    }
  }
  const auto note = [&](const std::vector<std::string>& names, const std::string& one, const std::string& several) {
    if (names.size() == 1) matrix.notes.push_back(fmt::format("the row of {} {}", names[0], one));
    if (names.size() > 1) matrix.notes.push_back(fmt::format("rows of {} {}", some_of(names), several));
  };
  note(missing, "is missing", "are missing");
  note(missing_cards, "is missing", "are missing");
  note(moved, fmt::format("is not used: {} is not on its diagonal", diagonal),
       fmt::format("are not used: {} is not on their diagonal", diagonal));
  note(cut, "ends early", "end early");
  note(bare, "does not say what stands in which column", "do not say what stands in which column");
}

}  // namespace

bool is_gpu_name(std::string_view name) { return name.starts_with("GPU") && whole_number(name.substr(3)); }

std::optional<size_t> Matrix::find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt : std::optional<size_t>(found - names.begin());
}

bool is_name(std::string_view word) {
  if (word.size() > kLongestName || !is_letter(word[0]) || counted_links(word) == word.size()) return false;
  const auto fits = [](char c) { return is_digit(c) || is_letter(c) || c == '_' || c == '.' || c == '-'; };
  return std::ranges::all_of(word, fits) && std::ranges::any_of(word, is_digit);
}

bool Matrix::has(Column column) const { return std::ranges::find(columns, column) != columns.end(); }

std::optional<std::string> Matrix::beside(size_t row, Column column) const {
  const auto found = std::ranges::find(columns, column);
  const auto at = static_cast<size_t>(found - columns.begin());
  if (found == columns.end() || at >= rows[row].more.size()) return std::nullopt;
  return rows[row].more[at];
}

Result<std::vector<Matrix>> read_matrices(const Text& text) {
  std::vector<Matrix> matrices;
  std::string above;
  for (size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    const bool cut = text.cut && i + 1 == text.lines.size();
    auto header = read_header(line, matrices.empty() ? nullptr : &matrices.back());
    if (header && header->names.size() > kMostNames)
      return usage_error(
          fmt::format("{}: a matrix of {} devices; at most {} are read", text.where, header->names.size(), kMostNames));
    if (header && matrices.size() == kMostMatrices) break;
    if (header) {
      header->title = std::exchange(above, {});
      matrices.push_back(std::move(*header));
    } else if (matrices.empty() || !take_row(line, cut, matrices.back())) {
      above = line;
    }
  }
  for (Matrix& matrix : matrices) check_rows(matrix);
  std::erase_if(matrices, [](const Matrix& m) { return std::ranges::none_of(m.rows, &Matrix::Row::there); });
  return matrices;
}

PairWords pair_words(const Matrix& matrix, size_t a, size_t b) {
  const auto cell = [&](size_t row, size_t column) -> std::string {
    const auto& cells = matrix.rows[row].cells;
    if (column >= cells.size()) return "";
    const std::string& word = cells[column];
    if (word == "N/A" || word == "?" || word == "-") return "";
    return word == "SOC" ? "SYS" : word;
  };
  const std::string forth = cell(a, b), back = cell(b, a);
  if (forth.empty() || forth == back) return {back, ""};
  return {forth, back};
}

}  // namespace remuda::recorded

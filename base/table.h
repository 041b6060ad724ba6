// Text tables for the terminal.
#pragma once

#include <string>
#include <vector>

namespace remuda {

/// Columns are as wide as their widest cell and two spaces apart; widths count characters of UTF-8, not bytes.
/// Columns whose cells are all numbers are aligned right.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  /// As many cells as the header has.
  void add(std::vector<std::string> row);
  /// Of columns that are cut, this one is cut before the others.
  void cut_first(size_t column) { cut_first_ = column; }
  /// All rows, each ending in a newline, no trailing spaces. Where they are longer than `width`, the widest columns are
  /// cut, with "..." where something is left out, but none to less than a few characters.
  std::string text(size_t width = kAnyWidth) const;

  /// Of its longest row, where nothing is cut.
  size_t width() const;

  static constexpr size_t kAnyWidth = static_cast<size_t>(-1);

 private:
  std::vector<size_t> widths() const;
  std::vector<std::vector<std::string>> rows_;
  size_t cut_first_ = kNoColumn;
  static constexpr size_t kNoColumn = static_cast<size_t>(-1);
};

}  // namespace remuda

#include "base/table.h"

#include <algorithm>
#include <numeric>

#include "base/characters.h"
#include "base/check.h"

namespace remuda {
namespace {

constexpr size_t kGap = 2;  // characters between columns

bool is_number(const std::string& cell) {
  return cell.find_first_of("0123456789") != std::string::npos &&
         cell.find_first_not_of("0123456789.,-+:% x") == std::string::npos;
}

size_t total_of(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

/// Narrows the column `first`, then the widest ones, until all fit into `width`, as far as possible.
void narrow(std::vector<size_t>& widths, size_t width, size_t first) {
  constexpr size_t kNarrowest = 8;
  const size_t total = total_of(widths);
  for (size_t excess = total > width ? total - width : 0; excess > 0; --excess) {
    const bool can_take_first = first < widths.size() && widths[first] > kNarrowest;
    const auto widest =
        can_take_first ? widths.begin() + static_cast<std::ptrdiff_t>(first) : std::ranges::max_element(widths);
    if (*widest <= kNarrowest) return;
    --*widest;
  }
}

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add(std::vector<std::string> row) {
  REMUDA_CHECK(row.size() == rows_.front().size(), "a row has as many cells as the header");
  rows_.push_back(std::move(row));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], characters(row[c]));
  return widths;
}

size_t Table::width() const { return total_of(widths()); }

std::string Table::text(size_t width) const {
  std::vector<size_t> widths = this->widths();
  narrow(widths, width, cut_first_);
  std::vector<bool> numeric(widths.size(), rows_.size() > 1);
  for (size_t r = 1; r < rows_.size(); ++r)
    for (size_t c = 0; c < widths.size(); ++c)
      if (!rows_[r][c].empty() && !is_number(rows_[r][c])) numeric[c] = false;
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string cell = shortened(row[c], widths[c]), padding(widths[c] - characters(cell), ' ');
      if (c > 0) line.append(kGap, ' ');
      line += numeric[c] ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace remuda

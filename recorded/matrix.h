// Matrix: the table in which most programs print links: names along the top and down the side, a word for each pair,
// then perhaps columns that say something of each row. Read as it is found in the wild: tabs or blanks, blank columns,
// lost tabs, rows cut, missing or out of order. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recorded/text.h"

namespace remuda::recorded {

/// What a column beside the matrix holds.
enum class Column {
  cores,        ///< CPU Affinity
  numa,         ///< NUMA Affinity, NUMA
  cpu_node,     ///< CPUNODE
  memory_node,  ///< GPU NUMA ID: the node of the GPU's own memory
  pci,          ///< BUSID
  other,
};

struct Matrix {
  struct Row {
    bool there = false;
    std::vector<std::string> cells;  ///< a word for each name, less where the row was cut; "" = blank
    std::vector<std::string> more;   ///< one for each column, less or none where that is not sure
  };
  std::string title;               ///< the line above its header; empty when there is none
  std::vector<std::string> names;  ///< each once
  std::vector<Column> columns;
  std::vector<size_t> columns_at;  ///< where the header prints them
  std::vector<Row> rows;           ///< one for each name
  std::vector<std::string> notes;  ///< what is wrong with it, a sentence each

  std::optional<size_t> find(std::string_view name) const;
  bool has(Column column) const;
  /// What the row says in a column: nothing when it is not sure; an empty text when it is blank.
  std::optional<std::string> beside(size_t row, Column column) const;
};

/// All matrices of a text that have a row, at most 16. A usage error when one names more than 256 devices. Rows whose
/// diagonal is not where it must be are not used: their cells have moved.
Result<std::vector<Matrix>> read_matrices(const Text& text);

/// What a matrix says of a pair.
struct PairWords {
  std::string word;      ///< empty: nothing
  std::string backward;  ///< the word in the other direction, where that is another one
};
/// In either direction: a word that stands in one of the two cells is the pair's. SOC is given as SYS.
PairWords pair_words(const Matrix& matrix, size_t a, size_t b);

/// GPU0, GPU12.
bool is_gpu_name(std::string_view name);
/// What may be the name of a device or a network card: mlx5_0, ibp5s0, NIC3. It holds a digit, so words of prose are
/// none.
bool is_name(std::string_view word);

}  // namespace remuda::recorded

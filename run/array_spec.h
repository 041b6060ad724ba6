// ArraySpec: the indices of `remuda run --array`, in Slurm's notation.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace remuda::run {

struct ArraySpec {
  static constexpr int kMostIndices = 10'000, kHighestIndex = 999'999'999;

  std::string text;          ///< as it was written
  std::vector<int> indices;  ///< ascending, each once
  int at_once = 0;           ///< at most so many wait or run; 0: as many as suit the machine, the limit in any case

  bool operator==(const ArraySpec&) const = default;
};

/// "0-9", "1,3,5", "0-20:5" (each fifth), and after any of these "%2" for at most two at once. A usage error otherwise.
/// Pure.
Result<ArraySpec> parse_array(const std::string& text);

}  // namespace remuda::run

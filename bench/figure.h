// Figure: one measured number, what it is compared with, and how it is printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::bench {

struct Figure {
  std::string name;
  Json parameters;
  double value = 0;
  std::string unit;
  std::optional<double> peer;   ///< the peer's value, in the same unit
  std::optional<double> ratio;  ///< how many times better than the peer; above 1 is better
  std::optional<double> limit;  ///< what the machine allows, in the same unit
};

/// A JSON object per line, or a table.
std::string as_json_lines(const std::vector<Figure>& figures);
std::string as_table(const std::vector<Figure>& figures);

}  // namespace remuda::bench

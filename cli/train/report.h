// `remuda report`: the reports of training runs, side by side.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::cli {

/// One column per run (headed by its name), one row per figure, with what each figure means at the end of its row.
std::string comparison_text(const std::vector<std::string>& names, const std::vector<Json>& reports);

}  // namespace remuda::cli

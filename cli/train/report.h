// `remuda report`: the reports of training runs, side by side.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::cli {

/// A name for the report in each file: as many of the last parts of its path as distinguish it from the others.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

/// One column per run (headed by its name), one row per figure, devices matched by their id; below the table, why a run
/// was slow and how the runs differ. No line is longer than 80 characters, unless a name is.
std::string comparison_text(const std::vector<std::string>& names, const std::vector<Json>& reports);

}  // namespace remuda::cli

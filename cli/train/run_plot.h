// The picture of a training run: loss, shares and the time of a step, over its steps. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace remuda::cli {

/// An SVG document of a report that has a `history`, for light and dark pages (prefers-color-scheme). Its points are
/// the report's, of which a run of any length has a few hundred; they keep extremes. `name` is the report's. A usage
/// error where there is no history.
Result<std::string> run_plot_svg(const Json& report, const std::string& name);

}  // namespace remuda::cli

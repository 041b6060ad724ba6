// Bars: a part of a whole, and a series over time, as cells. What is unknown is blank, and never drawn as 0. Pure.
#pragma once

#include <optional>

#include "snapshot/history.h"
#include "top/cells.h"

namespace remuda::top {

/// `part` from 0 to 1. Blank where it is not known.
Cells bar(std::optional<double> part, size_t width, Charset charset, Tone tone);

/// A column for each piece of the series, by the mean of what is known of it; `most`: the value of a full column.
Cells sparkline(const snapshot::Series& series, double most, size_t width, Charset charset, Tone tone);

}  // namespace remuda::top

// Spans of time and names of models as page and terminal write them where there is little room. Pure.
#pragma once

#include <string>

namespace remuda::snapshot {

/// duration_text() (base/duration.h) in as few characters as can be: "42m", "1h 5m", "2d".
std::string brief_time(double seconds);

/// The model without its vendor, line of products, socket and memory: "RTX 3090", "A100".
std::string short_model(const std::string& model, const std::string& vendor);

}  // namespace remuda::snapshot

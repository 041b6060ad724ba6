// Text in which a program says that it could not say more: "Failed to initialize NVML: Driver/library version
// mismatch". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "recorded/text.h"

namespace remuda::recorded {

/// Whether a line is such a sentence, or a warning that programs print beside what they were asked for.
bool is_complaint(std::string_view line);

/// What a text without anything else says of the failure, its lines joined by "; "; nothing for other text.
std::optional<std::string> failure_in(const Text& text);

}  // namespace remuda::recorded

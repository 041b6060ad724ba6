// The profile in a run's report, as text: what each rank's time went to, and its operators.
#pragma once

#include <string>

#include "base/json.h"

namespace remuda::cli {

/// Empty where the report has no profile. No line is longer than 80 characters, except for the name of the trace.
std::string profile_text(const Json& report);

}  // namespace remuda::cli

// What of a report says how hosts packed what they send each other (train.compression), and what that changed. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace remuda::cli {

/// For a line of the summary: "powersgd after step 13: 0.2 MiB and 0.29 s a step, in place of 13.2 MiB and 1.29 s".
/// Empty where the job did not ask for it.
std::string compression_line(const Json& report);

/// Where the run chose by itself: what, by which numbers, and whether steps then took what it expected. Else empty.
std::string compression_text(const Json& report);

/// Why train.compression = "auto" is not for a run with such a job; empty where it may be.
std::string why_no_compression(const Json& report);

}  // namespace remuda::cli

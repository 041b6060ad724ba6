// What a user sees of a job on stderr while it waits, runs and ends.
#pragma once

#include "run/relay.h"

namespace remuda::cli {

/// Prints on stderr what happens to a job; quiet: only what goes wrong. `how_to_end`: half a sentence for people,
/// printed after the devices.
run::Report job_progress(bool quiet, const std::string& how_to_end = "");

}  // namespace remuda::cli

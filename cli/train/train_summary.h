// The end of a training run: completes rank 0's report, and formats it as text.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "device/inventory.h"

namespace remuda::cli {

/// Adds the fields that only the launcher knows: the host, each device's model, the keys of the job, and remuda's
/// version. An error when `report` has no list of devices.
Result<Json> complete_report(Json report, const Inventory& inventory, const Json& job);

/// A table of the devices and a line for each result. A field the report lacks is left out, or "-" in the table. No
/// line is longer than 80 characters, unless it names a file.
std::string summary_text(const Json& report);

}  // namespace remuda::cli

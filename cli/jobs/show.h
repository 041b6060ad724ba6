// remuda show: all that is known of a job.
#pragma once

#include <string>

#include "base/json.h"
#include "device/inventory.h"
#include "pool/job.h"

namespace remuda::cli {

/// Lines of a name and a value, for people.
std::string job_text(const pool::Job& job, const Inventory& inventory, double now_s);

/// The record, and what follows from it: "job" (its name), "stage", "exit" (as `remuda wait` ends), "ran_s", "labels".
Json job_json(const pool::Job& job, const Inventory& inventory, double now_s);

}  // namespace remuda::cli

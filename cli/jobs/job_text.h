// What people read of a job, in a few words.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "pool/job.h"

namespace remuda::cli {

/// Its name and its command, cut to a few words.
std::string what_text(const pool::Job& job);

/// "gpu:0, gpu:3", by label; the id of a device that is not in the machine any more.
std::string labels_of(const std::vector<std::string>& devices, const Inventory& inventory);

}  // namespace remuda::cli

// What people read of a job, in a few words.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "pool/job.h"

namespace remuda::cli {

/// Its name and its command, cut to a few words.
std::string what_text(const pool::Job& job);

/// How it ended, for a sentence about it: "was cancelled by root". Where the pool does not tell, as of another user's:
/// "was cancelled", "failed" or "ended well".
std::string end_text(const pool::Job& job);

/// "gpu:0, gpu:3", by label; the id of a device that is not in the machine any more.
std::string labels_of(const std::vector<std::string>& devices, const Inventory& inventory);

/// ", cores 0-3 and 16 GiB of the host": what it has beside devices; empty where it is nothing.
std::string host_part_text(const pool::Job& job);
/// Of a running job with a part of the host, what keeps it to that: "it runs on no other cores and cannot take more
/// memory", or why nothing does.
std::string kept_text(const pool::Job& job);

}  // namespace remuda::cli

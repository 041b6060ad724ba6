// JobName: a job as people name it, 12, or 5.7 for index 7 of array 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "run/caretaker.h"

namespace remuda::cli {

struct JobName {
  int64_t id = 0;            ///< of the job, or of the array
  std::optional<int> index;  ///< in the array
  bool operator==(const JobName&) const = default;
};

/// Nothing for anything else: "", "5.", "-1", "gpu:0".
std::optional<JobName> parse_job_name(std::string_view text);

/// The job of that name, also one that has ended. A usage error where `text` is no name, or there is no such job.
Result<pool::Job> find_job(run::Caretaker& caretaker, const std::string& text);

}  // namespace remuda::cli

#include "cli/jobs/job_name.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/jobs/array_jobs.h"

namespace remuda::cli {

std::optional<JobName> parse_job_name(std::string_view text) {
  const size_t dot = text.find('.');
  const auto id = parse_number<int64_t>(text.substr(0, dot));
  if (!id || *id < 0) return std::nullopt;
  if (dot == std::string_view::npos) return JobName{*id, std::nullopt};
  const auto index = parse_number<int>(text.substr(dot + 1));
  if (!index || *index < 0) return std::nullopt;
  return JobName{*id, index};
}

Result<pool::Job> find_job(run::Caretaker& caretaker, const std::string& text) {
  const auto name = parse_job_name(text);
  if (!name)
    return usage_error(fmt::format("'{}' is no job; write its number, or 5.7 for index 7 of array 5", printable(text)));
  if (name->index) {
    REMUDA_ASSIGN(const std::vector<pool::Job> jobs, jobs_of_array(caretaker.pool(), name->id));
    const auto job = std::ranges::find(jobs, *name->index, &pool::Job::array_index);
    if (job != jobs.end()) return *job;
    REMUDA_ASSIGN(const auto array, caretaker.pool().find(name->id));
    if (!array || !is_array(*array)) return usage_error(fmt::format("there is no array {}", name->id));
    return usage_error(
        fmt::format("array {} has no job of index {}, or its turn has not come yet", name->id, *name->index));
  }
  REMUDA_ASSIGN(const auto job, caretaker.pool().find(name->id));
  if (job) return *job;
  return usage_error(fmt::format("there is no job {}", name->id));
}

}  // namespace remuda::cli

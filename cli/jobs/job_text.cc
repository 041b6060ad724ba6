#include "cli/jobs/job_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/characters.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/jobs/pool_machine.h"

namespace remuda::cli {

std::string what_text(const pool::Job& job) {
  constexpr size_t kLongest = 60;
  std::string text;
  for (const std::string& argument : job.command) text += (text.empty() ? "" : " ") + argument;
  if (!job.name.empty()) text = job.name + (text.empty() ? "" : ": " + text);
  std::ranges::replace(text, '\t', ' ');
  return shortened(printable(text), kLongest);
}

std::string end_text(const pool::Job& job) {
  if (!job.why.empty()) return job.why;
  if (job.cancelled) return "was cancelled";
  return succeeded(job) ? "ended well" : "failed";
}

std::string labels_of(const std::vector<std::string>& devices, const Inventory& inventory) {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "" : ", ") + label_of(inventory, device);
  return text;
}

std::string host_part_text(const pool::Job& job) {
  std::string text;
  if (!job.cores.empty()) text = fmt::format("core{} {}", job.cores.size() == 1 ? "" : "s", index_ranges(job.cores));
  if (const int64_t bytes = job.request.host_memory_bytes; bytes > 0 && job.started_s > 0)
    text += (text.empty() ? "" : " and ") + amount_text(bytes);
  return text.empty() ? "" : ", " + text + " of the host";
}

std::string kept_text(const pool::Job& job) {
  std::vector<std::string> parts;
  if (job.request.cores > 0)
    parts.emplace_back(job.host.cores == "cpuset"  ? "it runs on no other cores"
                       : job.host.cores == "quota" ? "it gets no more time than its cores have"
                                                   : "it starts on its cores, and may leave them");
  if (job.request.host_memory_bytes > 0)
    parts.emplace_back(job.host.memory ? "it cannot take more memory" : "nothing keeps it from taking more memory");
  std::string text = fmt::format("{}", fmt::join(parts, "; "));
  return job.host.why.empty() ? text : text + " (" + job.host.why + ")";
}

}  // namespace remuda::cli

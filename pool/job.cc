#include "pool/job.h"

#include <algorithm>

#include "device/fields.h"

namespace remuda::pool {

bool succeeded(const Job& job) {
  return job.state == JobState::ended && job.exit_status == 0 && job.signal == 0 && !job.cancelled;
}

bool is_array(const Job& job) { return job.array != 0 && job.array == job.id; }

Json to_json(const Job& job) {
  Json json = fields::write(job);
  json["request"] = to_json(job.request);
  return json;
}

Result<Job> parse_job(const Json& json, const std::string& where) {
  Job job;
  REMUDA_TRY(fields::read(json, where, job));
  if (!json.contains("request")) return usage_error(where + " lacks 'request'");
  REMUDA_ASSIGN(job.request, parse_request(json["request"], where + ".request"));
  return job;
}

Job* PoolState::find(int64_t id) {
  const auto found = std::ranges::lower_bound(jobs, id, {}, &Job::id);
  return found != jobs.end() && found->id == id ? &*found : nullptr;
}

const Job* PoolState::find(int64_t id) const {
  const auto found = std::ranges::lower_bound(jobs, id, {}, &Job::id);
  return found != jobs.end() && found->id == id ? &*found : nullptr;
}

}  // namespace remuda::pool

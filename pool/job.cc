#include "pool/job.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "device/fields.h"

namespace remuda::pool {
namespace {

struct FieldNames {
  std::set<std::string> names;
  template <typename T>
  void operator()(const char* key, const T&, const char*, bool = false) {
    names.insert(key);
  }
};

/// As sudo names a user: one without a name by a number.
std::string sudo_name(const std::string& user) {
  const bool is_number = !user.empty() && user.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? "'#" + user + "'" : user;
}

}  // namespace

bool succeeded(const Job& job) {
  return job.state == JobState::ended && job.exit_status == 0 && job.signal == 0 && !job.cancelled;
}

std::vector<int64_t> awaited_by(const Job& job) {
  std::vector<int64_t> ids = job.after;
  ids.insert(ids.end(), job.after_any.begin(), job.after_any.end());
  return ids;
}

std::string name_of(const Job& job) {
  if (job.array == 0 || is_array(job)) return std::to_string(job.id);
  return fmt::format("{}.{}", job.array, job.array_index);
}

bool is_array(const Job& job) { return job.array != 0 && job.array == job.id; }

Result<void> check_enter(const Job& job, int uid) {
  if (uid != job.uid)
    return usage_error(
        fmt::format("job {} belongs to {}{}", name_of(job), job.user,
                    uid == 0 ? fmt::format(", whose commands alone join it, and not root's: sudo -u {} remuda exec {} "
                                           "-- COMMAND",
                                           sudo_name(job.user), name_of(job))
                             : ""));
  if (is_array(job)) return usage_error(fmt::format("job {0} is an array: name one of its jobs, as {0}.0", job.id));
  if (job.state == JobState::running) return {};
  return usage_error(fmt::format("job {} {}: only one that runs can be entered", name_of(job),
                                 job.state == JobState::ended ? "has ended" : "still waits"));
}

std::string cannot_be_entered(int64_t job) {
  return fmt::format("job {} is not held by a cgroup, so nothing can join it; `remuda doctor` says why", job);
}

Json to_json(const Job& job) {
  Json json = fields::write(job);
  json["request"] = to_json(job.request);
  return json;
}

Json unknown_fields(const Json& job) {
  static const std::set<std::string> known = [] {
    FieldNames names{{"request"}};
    const Job plain;
    Job::fields(plain, names);
    return names.names;
  }();
  Json unknown = Json::object();
  for (const auto& [key, value] : job.items())
    if (!known.contains(key)) unknown[key] = value;
  const auto request = job.find("request");
  if (request == job.end() || !request->is_object()) return unknown;
  for (const auto& [key, value] : request->items())
    if (!is_request_field(key)) unknown["request"][key] = value;
  return unknown;
}

Result<Job> parse_job(const Json& json, const std::string& where) {
  Job job;
  REMUDA_TRY(fields::read(json, where, job));
  if (!json.contains("request")) return usage_error(where + " lacks 'request'");
  REMUDA_ASSIGN(job.request, parse_request(json["request"], where + ".request"));
  return job;
}

}  // namespace remuda::pool

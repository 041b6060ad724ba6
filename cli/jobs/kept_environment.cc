#include "cli/jobs/kept_environment.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/jobs/kept_file.h"
#include "cli/jobs/kept_line.h"

namespace remuda::cli {
namespace {

constexpr const char* kEnvironment = "environment";  ///< 7.environment.json
constexpr int64_t kSometimes = 16;                   ///< jobs, until those of killed ones are looked for

Result<std::string> path_of_environment(const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string folder, folder_of_lines(pool));
  return fmt::format("{}/{}.{}.json", folder, job, kEnvironment);
}

bool is_readable_again(const std::string& entry) {
  const auto again = parse_json(to_line(Json(entry)), "");
  return again && again->is_string() && again->get<std::string>() == entry;
}

Result<void> keep(const KeptEnvironment& environment, const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string path, path_of_environment(pool, job));
  const Json json{{"environment", environment.entries}, {"umask", environment.mask}, {"limits", environment.limits}};
  return write_kept_file(path, to_line(json) + "\n", true);
}

bool is_list_of_limits(const Json& json) {
  const auto is_pair = [](const Json& one) {
    return one.is_array() && one.size() == 2 && one[0].is_number_unsigned() && one[1].is_number_unsigned();
  };
  return json.is_array() && json.size() <= RLIM_NLIMITS && std::ranges::all_of(json, is_pair);
}

/// What starts the job has the user's home alone to look in.
bool is_in_home_of_login() {
  const auto home = env::get(env::home);
  const passwd* const user = ::getpwuid(::getuid());
  return user && home == user->pw_dir && !env::get(env::state_home);
}

void forget(const std::string& pool, int64_t job) {
  if (const auto path = path_of_environment(pool, job)) ::unlink(path->c_str());
}

/// Of jobs whose processes were killed before they could do that. Those that have come meanwhile have higher numbers.
Result<void> forget_ended(const std::string& pool, int64_t newest, const OpenJobs& open_jobs) {
  REMUDA_ASSIGN(const std::string folder, folder_of_lines(pool));
  REMUDA_ASSIGN(const std::vector<int64_t> open, open_jobs());
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto name = split(entry->path().filename().string(), '.');
    const auto job = parse_number<int64_t>(name.front());
    if (name.size() == 3 && name[1] == kEnvironment && job && *job < newest &&
        std::ranges::find(open, *job) == open.end())
      forget(pool, *job);
  }
  return {};
}

}  // namespace

KeptEnvironment own_environment() {
  KeptEnvironment own;
  own.mask = ::umask(0);
  ::umask(own.mask);
  own.is_whole = is_in_home_of_login();
  for (char** entry = environ; *entry; ++entry) {
    if (is_readable_again(*entry))
      own.entries.emplace_back(*entry);
    else
      own.is_whole = false;
  }
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
    ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    own.limits.emplace_back(limit.rlim_cur, limit.rlim_max);
  }
  return own;
}

/// A hard limit can be raised by root alone.
void take_on(const KeptEnvironment& environment) {
  ::umask(environment.mask);
  for (size_t number = 0; number < environment.limits.size(); ++number) {
    const auto resource = static_cast<__rlimit_resource>(number);
    rlimit limit{environment.limits[number].first, environment.limits[number].second}, now{};
    if (::setrlimit(resource, &limit) == 0 || ::getrlimit(resource, &now) != 0) continue;
    limit.rlim_max = std::min(limit.rlim_max, now.rlim_max);
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    ::setrlimit(resource, &limit);
  }
}

std::function<bool(const run::Message&)> keeper_of(std::optional<KeptEnvironment> environment, std::string pool,
                                                   OpenJobs open_jobs) {
  return [environment = std::move(environment), pool = std::move(pool), open_jobs = std::move(open_jobs),
          is_whole = !environment || environment->is_whole](const run::Message& message) mutable {
    const bool has_ended = message.kind == run::Message::Kind::ended;
    if (message.job > 0 && has_ended) forget(pool, message.job);
    if (message.job > 0 && !has_ended && environment && keep(*environment, pool, message.job)) {
      environment.reset();
      if (message.job % kSometimes == 0) (void)forget_ended(pool, message.job, open_jobs);
    }
    return is_whole && !environment && !has_ended;
  };
}

void forget_environments(const std::string& pool, const std::vector<int64_t>& jobs, const OpenJobs& open_jobs) {
  const auto open = jobs.empty() ? Result<std::vector<int64_t>>() : open_jobs();
  for (const int64_t job : jobs)
    if (open && std::ranges::find(*open, job) == open->end()) forget(pool, job);
}

Result<KeptEnvironment> read_kept_environment(const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string path, path_of_environment(pool, job));
  REMUDA_ASSIGN(const std::string text, read_kept_file(path, fmt::format("the environment of job {}", job)));
  REMUDA_ASSIGN(const Json json, parse_json(text, path));
  const auto entries = json.is_object() ? json.value("environment", Json()) : Json();
  const auto mask = json.is_object() ? json.value("umask", Json()) : Json();
  const auto limits = json.is_object() ? json.value("limits", Json::array()) : Json();
  if (!is_list_of_limits(limits) || !entries.is_array() ||
      !std::ranges::all_of(entries, [](const Json& one) { return one.is_string(); }) || !mask.is_number_unsigned() ||
      mask.get<uint64_t>() > 0777)
    return failed(fmt::format("{} is damaged", path));
  return KeptEnvironment{entries.get<std::vector<std::string>>(), mask.get<mode_t>(),
                         limits.get<std::vector<std::pair<uint64_t, uint64_t>>>()};
}

}  // namespace remuda::cli

#include "cli/jobs/kept_environment.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

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
  return write_kept_file(path, to_line(Json{{"environment", environment.entries}, {"umask", environment.mask}}) + "\n",
                         true);
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
  for (char** entry = environ; *entry; ++entry)
    if (is_readable_again(*entry)) own.entries.emplace_back(*entry);
  return own;
}

std::function<void(const run::Message&)> keeping(std::optional<KeptEnvironment> environment, std::string pool,
                                                 OpenJobs open_jobs, std::function<void(const run::Message&)> report) {
  return [environment = std::move(environment), pool = std::move(pool), open_jobs = std::move(open_jobs),
          report = std::move(report)](const run::Message& message) mutable {
    const bool has_ended = message.kind == run::Message::Kind::ended;
    if (message.job > 0 && has_ended) forget(pool, message.job);
    if (message.job > 0 && !has_ended && environment && keep(*environment, pool, message.job)) {
      environment.reset();
      if (message.job % kSometimes == 0) (void)forget_ended(pool, message.job, open_jobs);
    }
    report(message);
  };
}

Result<KeptEnvironment> read_kept_environment(const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string path, path_of_environment(pool, job));
  REMUDA_ASSIGN(const std::string text, read_kept_file(path, fmt::format("the environment of job {}", job)));
  REMUDA_ASSIGN(const Json json, parse_json(text, path));
  const auto entries = json.is_object() ? json.value("environment", Json()) : Json();
  const auto mask = json.is_object() ? json.value("umask", Json()) : Json();
  if (!entries.is_array() || !std::ranges::all_of(entries, [](const Json& one) { return one.is_string(); }) ||
      !mask.is_number_unsigned() || mask.get<uint64_t>() > 0777)
    return failed(fmt::format("{} is damaged", path));
  return KeptEnvironment{entries.get<std::vector<std::string>>(), mask.get<mode_t>()};
}

}  // namespace remuda::cli

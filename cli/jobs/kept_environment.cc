#include "cli/jobs/kept_environment.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/state_folder.h"
#include "cli/jobs/kept_line.h"

namespace remuda::cli {
namespace {

Result<std::string> path_of_environment(const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string folder, folder_of_lines(pool));
  return fmt::format("{}/{}.environment.json", folder, job);
}

bool is_readable_again(const std::string& entry) {
  const auto again = parse_json(to_line(Json(entry)), "");
  return again && again->is_string() && again->get<std::string>() == entry;
}

Result<void> keep(const KeptEnvironment& environment, const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string path, path_of_environment(pool, job));
  REMUDA_TRY(make_folder(path.substr(0, path.rfind('/'))));
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed(fmt::format("cannot write {}: {}", path, errno_text(errno)));
  return write_all(file.get(), to_line(Json{{"environment", environment.entries}, {"umask", environment.mask}}) + "\n",
                   path);
}

void forget(const std::string& pool, int64_t job) {
  if (const auto path = path_of_environment(pool, job)) ::unlink(path->c_str());
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

std::function<void(const run::Message&)> keeping(KeptEnvironment environment, std::string pool,
                                                 std::function<void(const run::Message&)> report) {
  return [environment = std::move(environment), pool = std::move(pool), report = std::move(report),
          is_kept = false](const run::Message& message) mutable {
    const bool has_ended = message.kind == run::Message::Kind::ended;
    if (message.job > 0 && has_ended) forget(pool, message.job);
    if (message.job > 0 && !has_ended && !is_kept) is_kept = keep(environment, pool, message.job).has_value();
    report(message);
  };
}

Result<KeptEnvironment> read_kept_environment(const std::string& pool, int64_t job) {
  REMUDA_ASSIGN(const std::string path, path_of_environment(pool, job));
  const auto text = read_text(path);
  if (!text) return usage_error(fmt::format("the environment of job {} was not kept", job));
  REMUDA_ASSIGN(const Json json, parse_json(*text, path));
  const auto entries = json.is_object() ? json.value("environment", Json()) : Json();
  const auto mask = json.is_object() ? json.value("umask", Json()) : Json();
  if (!entries.is_array() || !std::ranges::all_of(entries, [](const Json& one) { return one.is_string(); }) ||
      !mask.is_number_unsigned() || mask.get<uint64_t>() > 0777)
    return failed(fmt::format("{} is damaged", path));
  return KeptEnvironment{entries.get<std::vector<std::string>>(), mask.get<mode_t>()};
}

}  // namespace remuda::cli

#include "cli/jobs/kept_line.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/json.h"
#include "base/number.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "cli/jobs/kept_file.h"

namespace remuda::cli {
namespace {

namespace fs = std::filesystem;

/// Flags that describe this one call, not the job. The machine is that of the pool.
constexpr std::array<std::string_view, 6> kOfOneCall{"help", "machine", "detach", "dry-run", "quiet", "take-over"};

std::string path_of_line(const std::string& folder, int64_t job) { return fmt::format("{}/{}.json", folder, job); }

/// Keeps the files of as many jobs as a pool remembers of one user, and some more: the newest. By their times, as jobs
/// of others count in the numbers, and a new pool begins again with 1.
void remove_old_lines(const std::string& folder, int64_t newest) {
  constexpr size_t kKept = 2 * 20'000;
  constexpr int64_t kSometimes = 256;
  if (newest % kSometimes != 0) return;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (parse_number<int64_t>(split(entry->path().filename().string(), '.').front()))
      files.emplace_back(entry->last_write_time(error), entry->path());
  std::ranges::sort(files, std::greater());
  for (size_t i = kKept; i < files.size(); ++i) fs::remove(files[i].second, error);
}

std::string text_of(const KeptLine& line) {
  return to_line(Json{{"flags", line.flags}, {"command", line.command}, {"folder", line.folder}}) + "\n";
}

bool is_text_list(const Json& json) {
  return json.is_array() && std::ranges::all_of(json, [](const Json& word) { return word.is_string(); });
}

Result<KeptLine> parse_line(const std::string& text, const std::string& path) {
  REMUDA_ASSIGN(const Json json, parse_json(text, path));
  const auto part = [&](const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); };
  if (!is_text_list(part("flags")) || !is_text_list(part("command")) || !part("folder").is_string())
    return failed(fmt::format("{} is damaged", path));
  return KeptLine{part("flags").get<std::vector<std::string>>(), part("command").get<std::vector<std::string>>(),
                  part("folder").get<std::string>()};
}

/// Compares the words of the command as the pool has them: without characters that are unsafe for a terminal, and cut
/// where they are long.
bool is_same_command(const std::vector<std::string>& line, const pool::Job& job) {
  const bool has_flag = !job.command.empty() && (is_array(job) || job.command.front() == "--tasks");
  const size_t first = has_flag ? 2 : 0;
  for (size_t i = 0; i < line.size() && first + i < job.command.size(); ++i) {
    const std::string& known = job.command[first + i];
    if (known != printable(line[i]) && !known.ends_with("...")) return false;
  }
  return job.command.size() >= first + std::min<size_t>(line.size(), 1);
}

Result<void> keep_line(const KeptLine& line, const std::string& pool, int64_t job, bool survives) {
  const std::string text = text_of(line);
  const auto again = parse_line(text, "");
  if (!again || *again != line) return usage_error("it is no UTF-8");  // it would be read back as something else
  REMUDA_ASSIGN(const std::string folder, folder_of_lines(pool));
  REMUDA_TRY(write_kept_file(path_of_line(folder, job), text, survives));
  remove_old_lines(folder, job);
  return {};
}

}  // namespace

/// Many machines may share a home, and their pools may have the same path.
Result<std::string> folder_of_lines(const std::string& pool) {
  const auto state = state_folder();
  if (!state) return usage_error("neither HOME nor XDG_STATE_HOME names a folder");
  char host[256] = {};
  (void)::gethostname(host, sizeof host - 1);
  const std::string key = std::string(host) + '\n' + pool;
  return fmt::format("{}/lines/{:016x}", *state, XXH3_64bits(key.data(), key.size()));
}

std::optional<std::string> KeptLine::flag(const std::string& name) const {
  std::vector<std::string> values;
  const std::string start = "--" + name + "=";
  for (const std::string& flag : flags)
    if (flag.starts_with(start)) values.push_back(flag.substr(start.size()));
  if (values.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(values, ","));
}

std::vector<std::string> words_of(const CLI::Option& option) {
  std::vector<std::string> words;
  if (option.count() == 0) return words;
  const std::string name = "--" + option.get_lnames().front();
  if (option.get_items_expected_max() == 0) return {name};
  for (const std::string& value : option.results()) words.push_back(fmt::format("{}={}", name, value));
  return words;
}

KeptLine line_of(const CLI::App& run, std::vector<std::string> command) {
  KeptLine line{.flags = {}, .command = std::move(command), .folder = ""};
  std::error_code error;
  line.folder = fs::current_path(error).string();
  for (const CLI::Option* option : run.get_options()) {
    if (option->get_positional() || option->get_lnames().empty()) continue;
    if (std::ranges::find(kOfOneCall, option->get_lnames().front()) != kOfOneCall.end()) continue;
    std::ranges::move(words_of(*option), std::back_inserter(line.flags));
  }
  return line;
}

std::function<bool(const run::Message&)> keeper_of(KeptLine line, std::string pool, bool survives) {
  return [line = std::move(line), pool = std::move(pool), survives, is_kept = false,
          was_tried = false](const run::Message& message) mutable {
    if (message.job > 0 && !was_tried) is_kept = keep_line(line, pool, message.job, survives).has_value();
    was_tried = was_tried || message.job > 0;
    return is_kept;
  };
}

Result<KeptLine> read_kept_line(const std::string& pool, const pool::Job& job) {
  REMUDA_ASSIGN(const std::string folder, folder_of_lines(pool));
  const std::string path = path_of_line(folder, job.id), what = fmt::format("the command line of job {}", job.id);
  REMUDA_ASSIGN(const std::string text, read_kept_file(path, what));
  REMUDA_ASSIGN(KeptLine line, parse_line(text, path));
  if (!is_same_command(line.command, job)) return usage_error(what + " was not kept");
  return line;
}

}  // namespace remuda::cli

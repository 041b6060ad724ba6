#include "cluster/slurm_text.h"

#include <algorithm>
#include <set>

#include "base/number.h"
#include "base/text.h"

namespace remuda::cluster {
namespace {

/// Of a machine, and of a list of any kind: more is no text of Slurm's.
constexpr size_t kMostGpus = 1024;

/// Words between white space.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& line : split(std::string(text), '\n'))
    for (std::string& word : split(line, ' '))
      if (!word.empty()) words.push_back(std::move(word));
  return words;
}

/// What follows "KEY=" where a word is that.
std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
  if (!word.starts_with(key) || word.size() <= key.size() || word[key.size()] != '=') return std::nullopt;
  return word.substr(key.size() + 1);
}

/// The parts between commas that are in no brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= list.size(); ++at) {
    const char c = at < list.size() ? list[at] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (at < list.size() && (c != ',' || depth > 0)) continue;
    if (at > begin) parts.push_back(list.substr(begin, at - begin));
    begin = at + 1;
  }
  return parts;
}

struct Range {
  int first = 0, last = 0;
  size_t width = 0;  ///< digits, with zeros in front
};

/// "0-1", "3"; nothing for "N/A".
std::optional<Range> parse_range(std::string_view text) {
  const size_t dash = text.find('-');
  const std::string_view from = text.substr(0, dash),
                         to = dash == std::string_view::npos ? from : text.substr(dash + 1);
  const auto first = parse_number<int>(from), last = parse_number<int>(to);
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Range{*first, *last, from.size()};
}

/// "gpu:a100:2(IDX:0-1)" and others of a list; only those of "gpu".
std::vector<int> gpus_of(std::string_view gres) {
  constexpr std::string_view kIndices = "(IDX:";
  std::set<int> gpus;
  for (const std::string_view one : parts_of(gres)) {
    if (one.substr(0, one.find_first_of(":(")) != "gpu") continue;
    const size_t begin = one.find(kIndices), end = one.find(')', begin == std::string_view::npos ? 0 : begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    const std::string_view list = one.substr(begin + kIndices.size(), end - begin - kIndices.size());
    for (const std::string_view part : parts_of(list)) {
      const auto range = parse_range(part);
      for (int gpu = range ? range->first : 0; range && gpu <= range->last && gpus.size() < kMostGpus; ++gpu)
        gpus.insert(gpu);
    }
  }
  return {gpus.begin(), gpus.end()};
}

/// "/dev/nvidia[0-1,3]" -> "/dev/nvidia0", ...
void add_files(std::string_view list, std::vector<std::string>& files) {
  for (const std::string_view part : parts_of(list)) {
    const size_t open = part.find('['), close = part.rfind(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
      if (files.size() < kMostGpus) files.emplace_back(part);
      continue;
    }
    for (const std::string_view numbers : parts_of(part.substr(open + 1, close - open - 1))) {
      const auto range = parse_range(numbers);
      for (int number = range ? range->first : 0; range && number <= range->last && files.size() < kMostGpus; ++number)
        files.push_back(std::string(part.substr(0, open)) + std::to_string(number) +
                        std::string(part.substr(close + 1)));
    }
  }
}

/// Whether "box[01-03,7]" has "box02".
bool matches(std::string_view pattern, std::string_view node) {
  const size_t open = pattern.find('['), close = pattern.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return pattern == node;
  const std::string_view before = pattern.substr(0, open), after = pattern.substr(close + 1);
  if (node.size() < before.size() + after.size() || !node.starts_with(before) || !node.ends_with(after)) return false;
  const std::string_view digits = node.substr(before.size(), node.size() - before.size() - after.size());
  const auto number = parse_number<int>(digits);
  return number && std::ranges::any_of(parts_of(pattern.substr(open + 1, close - open - 1)), [&](auto part) {
           const auto range = parse_range(part);
           return range && *number >= range->first && *number <= range->last && digits.size() >= range->width;
         });
}

}  // namespace

std::vector<std::string> parse_gres_files(std::string_view text) {
  std::vector<std::string> files;
  for (const std::string& line : split(std::string(text), '\n')) {
    bool is_gpu = false;
    for (const std::string& word : words_of(line)) {
      if (const auto name = value_of(word, "Name")) is_gpu = *name == "gpu";
      const auto list = value_of(word, "File");
      if (is_gpu && list && *list != "(null)") add_files(*list, files);
    }
  }
  return files;
}

std::vector<int> parse_used_gpus(std::string_view text) {
  for (const std::string& word : words_of(text))
    if (const auto used = value_of(word, "GresUsed")) return gpus_of(*used);
  return {};
}

/// "JobId=123 ... UserId=ana(1000) ... Nodes=box CPU_IDs=0-1 Mem=0 GRES=gpu:1(IDX:0)"; the last three for each kind of
/// node.
SlurmJob parse_slurm_job(std::string_view text, int64_t id, const std::string& node) {
  SlurmJob job;
  std::set<int> gpus;
  bool is_own = false, is_here = false;
  for (const std::string& word : words_of(text)) {
    if (const auto job = value_of(word, "JobId")) {
      is_own = parse_number<int64_t>(*job) == id;
      is_here = false;
    }
    if (!is_own) continue;
    if (const auto user = value_of(word, "UserId")) job.user = printable(user->substr(0, user->find('(')));
    if (const auto nodes = value_of(word, "Nodes")) is_here = has_node(*nodes, node);
    if (const auto gres = value_of(word, "GRES"); gres && is_here)
      for (const int gpu : gpus_of(*gres)) gpus.insert(gpu);
  }
  job.gpus.assign(gpus.begin(), gpus.end());
  return job;
}

bool has_node(std::string_view list, const std::string& node) {
  return std::ranges::any_of(parts_of(list), [&](std::string_view part) { return matches(part, node); });
}

std::optional<int64_t> job_of_cgroup(std::string_view path) {
  constexpr std::string_view kJob = "job_";
  if (path.find("slurm") == std::string_view::npos) return std::nullopt;
  for (const std::string& name : split(std::string(path), '/')) {
    const auto number = name.starts_with(kJob) ? parse_number<int64_t>(name.substr(kJob.size())) : std::nullopt;
    if (number && *number > 0) return number;
  }
  return std::nullopt;
}

}  // namespace remuda::cluster

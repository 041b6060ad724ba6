#include "cli/train/report_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <regex>
#include <set>

#include "base/characters.h"
#include "base/text.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr double kMuchLost = 0.1;    // of the memory that tensors could have, in blocks that do not fit
constexpr double kMuchUneven = 1.5;  // times the smallest batch that a device normalises

/// Whether runs that differ in this key learn the same, except for the rounding of sums.
bool learns_the_same(const std::string& key) {
  static const std::set<std::string> kKeys{"memory.parameters",   "memory.optimizer",   "memory.activations",
                                           "memory.recompute",    "memory.empty_cache", "memory.recompute_blocks",
                                           "train.encrypt",       "train.streams",      "train.check_every",
                                           "train.deterministic", "data.workers",       "data.cache_mib"};
  return kKeys.contains(key) || key.starts_with("balance.") || key.starts_with("output.") ||
         key.starts_with("checkpoint.") || key.starts_with("elastic.") || key.starts_with("engine.");
}

/// The keys of the job; the devices stand in the table.
std::map<std::string, std::string> job_keys_of(const Json& report) {
  std::map<std::string, std::string> keys;
  if (!report.contains("job") || !report["job"].is_object()) return keys;
  for (const auto& [key, value] : report["job"].items())
    keys[key] = value.is_string() ? value.get<std::string>() : to_line(value);
  return keys;
}

/// "NAME TEXT, NAME TEXT" for all runs.
template <typename Text>
std::string per_run(const std::vector<std::string>& names, const Text& text_of) {
  std::vector<std::string> texts;
  for (size_t run = 0; run < names.size(); ++run) texts.push_back(fmt::format("{} {}", names[run], text_of(run)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "KEY: one 1, two 2" for each key that is not the same in all runs whose reports have keys.
std::vector<std::string> different_keys(const std::vector<std::string>& names, const std::vector<Json>& reports,
                                        bool& learnt_alike) {
  std::vector<std::map<std::string, std::string>> keys;
  std::set<std::string> all;
  for (const Json& report : reports) {
    keys.push_back(job_keys_of(report));
    if (keys.back().empty()) return {};  // written before reports had keys
    for (const auto& [key, value] : keys.back()) all.insert(key);
  }
  std::vector<std::string> texts;
  for (const std::string& key : all) {
    const auto value_of = [&](size_t run) {
      const auto found = keys[run].find(key);
      return found == keys[run].end() || found->second.empty() ? std::string("not set") : printable(found->second);
    };
    bool same = true;
    for (size_t run = 1; run < keys.size(); ++run) same = same && value_of(run) == value_of(0);
    if (same) continue;
    learnt_alike = learnt_alike && learns_the_same(key);
    texts.push_back(fmt::format("{}: {}", printable(key), per_run(names, value_of)));
  }
  return texts;
}

bool stopped(const Json& report) { return report.value("stopped", Json(false)) == Json(true); }

std::vector<std::string> device_ids(const Json& report) {
  std::vector<std::string> ids;
  for (const Json& device : report.value("devices", Json::array()))
    ids.push_back(printable(workers::text_field(device, "id", "-")));
  return ids;
}

double steps_of(const Json& report) { return workers::number_field(report, "steps", NAN); }

bool same_steps(const std::vector<Json>& reports) {
  return std::all_of(reports.begin(), reports.end(), [&](const Json& report) {
    return steps_of(report) == steps_of(reports[0]) ||
           (std::isnan(steps_of(report)) && std::isnan(steps_of(reports[0])));
  });
}

}  // namespace

bool takes_samples(const Json& device) {
  const std::string role = workers::text_field(device, "role", "compute");
  return role == "compute" || role == "auto";
}

std::vector<std::string> device_names(const Json& report) { return made_distinct(device_ids(report)); }

std::optional<double> predicted_difference(const Json& report) {
  const double actual = workers::number_field(report, "samples_per_s");
  const double predicted = workers::number_field(report.value("predicted", Json::object()), "samples_per_s");
  if (!(actual > 0 && predicted > 0)) return std::nullopt;
  return actual / predicted - 1;
}

namespace {

/// 0: shares are no whole numbers of one.
double micro_batch_of(const Json& report) {
  return workers::number_field(report.value("balance", Json::object()), "micro_batch");
}

Json memory_of(const Json& device) {
  return device.is_object() ? device.value("memory", Json::object()) : Json::object();
}

/// Where blocks that do not fit are the reason that the memory was not enough.
std::string fragmentation_text(const std::string& name, const Json& memory) {
  const double peak = workers::number_field(memory, "peak_bytes"),
               reserved = workers::number_field(memory, "reserved_peak_bytes"),
               room = workers::number_field(memory, "room_bytes");
  if (!(room > 0 && reserved - peak > kMuchLost * room)) return "";
  return fmt::format(
      "Tensors on {} took {} at most, but libtorch's allocator {}: the rest is lost in blocks that do not fit "
      "(fragmentation); its setting expandable_segments, from libtorch 2.1 on, may help.",
      name, human_bytes(peak), human_bytes(reserved));
}

}  // namespace

std::string memory_text(const Json& report) {
  std::vector<std::string> texts;
  const std::vector<std::string> names = device_names(report);
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const Json& device = report.at("devices")[rank];
    const double steps = workers::number_field(device, "oom_steps"), pieces = workers::number_field(device, "pieces");
    if (steps > 0 && micro_batch_of(report) > 0)
      texts.push_back(
          fmt::format("{} ran out of memory {}, with micro-batches of {:.0f} samples, and got fewer of them; a "
                      "smaller train.micro_batch, or memory.recompute = \"blocks\", may help.",
                      names[rank], counted(steps, "time"), micro_batch_of(report)));
    else if (steps > 0)
      texts.push_back(
          fmt::format("{} ran out of memory {}; each time the step was repeated, in the end with its part in {}. "
                      "memory.accumulate = {:.0f}, or memory.recompute = \"blocks\", saves the attempts.",
                      names[rank], counted(steps, "time"), counted(pieces, "piece"), std::max(2.0, pieces)));
    if (const std::string lost = fragmentation_text(names[rank], memory_of(device)); steps > 0 && !lost.empty())
      texts.push_back(lost);
    if (workers::number_field(device, "oom_evaluations") > 0)
      texts.push_back(
          fmt::format("{} ran out of memory in evaluation, and went on with smaller batches.", names[rank]));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string unregistered_text(const Json& report) {
  std::vector<std::string> texts;
  const std::vector<std::string> names = device_names(report);
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const Json& device = report.at("devices")[rank];
    if (!device.contains("unregistered")) continue;
    const Json& unregistered = device["unregistered"];
    texts.push_back(
        fmt::format("Copies between {} and its host took a detour, which is slower: its driver registered {} of memory "
                    "less than it "
                    "was asked for ({}). A limit of locked memory may be why (`ulimit -l`).",
                    names[rank], human_bytes(workers::number_field(unregistered, "bytes")),
                    printable(workers::text_field(unregistered, "why", "it did not say why"))));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string batch_norm_text(const Json& report) {
  if (workers::text_field(report, "batch_norm") != "local" || micro_batch_of(report) > 0) return "";
  double least = INFINITY, most = 0;
  for (const Json& device : report.value("devices", Json::array())) {
    const double share =
        workers::number_field(device, "share") / std::max(1.0, workers::number_field(device, "pieces"));
    if (share > 0) least = std::min(least, share), most = std::max(most, share);
  }
  if (most < kMuchUneven * least) return "";
  const auto keys = job_keys_of(report);
  const bool built_in = keys.contains("model.name") && !keys.at("model.name").empty();
  return fmt::format(
      "Batch norm normalises the samples of each device by themselves, and some have {:.1f} times as many as others; "
      "with "
      "balance.unit = \"microbatches\" it normalises as many at a time on each{}.",
      most / least, built_in ? ", and with train.batch_norm = \"synchronized\" those of all devices together" : "");
}

std::string plain_cause(const std::string& cause) {
  static const std::map<std::string, const char*> kCalls{{"allocate", "memory was set up"},
                                                         {"all_reduce", "values were added up"},
                                                         {"reduce_scatter", "gradients were added up"},
                                                         {"gather_parts", "parameters were gathered"},
                                                         {"broadcast", "one rank sent to all"},
                                                         {"all_gather", "ranks told each other of their step"},
                                                         {"all_to_all", "packed gradients were exchanged"},
                                                         {"barrier", "ranks waited for each other"},
                                                         {"split", "ranks connected"}};
  static const std::regex kDuring(R"( during ([a-z_]+) #\d+[^()]*(\([^()]*\))?)");
  std::smatch found;
  if (!std::regex_search(cause, found, kDuring) || !kCalls.contains(found[1])) return cause;
  return found.prefix().str() + " while " + kCalls.at(found[1]) + found.suffix().str();
}

std::string loss_text(const Json& report) {
  std::vector<std::string> sentences;
  for (const Json& loss : report.value("lost_ranks", Json::array())) {
    const double made = workers::number_field(loss, "step"), from = workers::number_field(loss, "resumed_from");
    const std::string state = workers::text_field(loss, "state");
    sentences.push_back(
        fmt::format("Rank {:.0f} ({}) was lost after step {:.0f}: {}. {:.1f} s later the others went on {}.",
                    workers::number_field(loss, "rank"), workers::text_field(loss, "device", "-"), made,
                    plain_cause(workers::text_field(loss, "cause", "-")), workers::number_field(loss, "seconds"),
                    state == "start"
                        ? "from the start"
                        : fmt::format("after step {:.0f}, from {}, and repeated {}", from,
                                      state == "checkpoint" ? "the checkpoint" : state, counted(made - from, "step"))));
  }
  return printable(fmt::format("{}", fmt::join(sentences, " ")));
}

std::string join_text(const Json& report) {
  std::vector<std::string> sentences;
  for (const Json& join : report.value("joined_ranks", Json::array())) {
    const std::string device = workers::text_field(join, "device", "-"), failed = workers::text_field(join, "failed");
    const double step = workers::number_field(join, "step"), seconds = workers::number_field(join, "seconds");
    sentences.push_back(failed.empty() ? fmt::format("Rank {:.0f} ({}) joined after step {:.0f}, which took {:.1f} s.",
                                                     workers::number_field(join, "rank"), device, step, seconds)
                                       : fmt::format("{} was not taken in after step {:.0f}, which took {:.1f} s: {}.",
                                                     device, step, seconds, failed));
  }
  return printable(fmt::format("{}", fmt::join(sentences, " ")));
}

std::string roles_text(const Json& report) {
  return printable(workers::text_field(report.value("roles", Json::object()), "sentence"));
}

std::string left_out_text(const Json& report) {
  std::vector<std::string> sentences;
  const Json balance = report.value("balance", Json::object());
  for (const Json& one : balance.value("left_out", Json::array()))
    sentences.push_back(fmt::format("{} is left out: with it {:.0f} samples/s{}, without {:.0f}.",
                                    workers::text_field(one, "device", "-"),
                                    workers::number_field(one, "with_samples_per_s"),
                                    one.value("with_was_tried", Json(false)) == Json(true) ? "" : " predicted",
                                    workers::number_field(one, "without_samples_per_s")));
  return printable(fmt::format("{}", fmt::join(sentences, " ")));
}

std::vector<std::string> differences(const std::vector<std::string>& names, const std::vector<Json>& reports) {
  bool comparable = true;
  std::vector<std::string> texts = different_keys(names, reports, comparable);
  if (!same_steps(reports)) {
    comparable = false;
    texts.push_back(fmt::format("steps: {}", per_run(names, [&](size_t run) {
                                  const double steps = steps_of(reports[run]);
                                  return std::isnan(steps) ? std::string("unknown") : fmt::format("{:.0f}", steps);
                                })));
  }
  for (size_t run = 0; run < reports.size(); ++run)
    if (stopped(reports[run])) {
      comparable = comparable && reports.size() == 1;
      texts.push_back(fmt::format("{} was stopped early, after step {:.0f}", names[run], steps_of(reports[run])));
    }
  if (!comparable && reports.size() > 1)
    texts.emplace_back("Losses and accuracies of these runs do not compare: they did not train the same.");
  return texts;
}

std::string wrapped(const std::string& text, size_t width) {
  std::string lines, line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && characters(line) + 1 + characters(word) > width) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line + "\n";
}

}  // namespace remuda::cli

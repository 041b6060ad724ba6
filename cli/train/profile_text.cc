#include "cli/train/profile_text.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "cli/train/report_text.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr size_t kWidth = 80;

using workers::number_field;
using workers::text_field;

/// The list in the field, or an empty one.
Json list_field(const Json& object, const char* key) {
  const bool has = object.is_object() && object.contains(key) && object[key].is_array();
  return has ? object[key] : Json::array();
}

std::string operator_table(const Json& rank) {
  const bool has_device_times = rank.contains("device_s");
  const double all_s = number_field(rank, has_device_times ? "device_s" : "operators_s");
  std::vector<std::string> head{"operator", "calls", "total ms", "self ms"};
  if (has_device_times) head.insert(head.end(), {"device ms", "its self"});
  head.emplace_back("self %");
  Table table(head);
  table.cut_first(0);
  for (const Json& one : list_field(rank, "operators")) {
    const auto ms = [&](const char* key) { return fmt::format("{:.2f}", 1e3 * number_field(one, key)); };
    std::vector<std::string> row{printable(text_field(one, "name")), fmt::format("{:.0f}", number_field(one, "calls")),
                                 ms("total_s"), ms("self_s")};
    if (has_device_times) row.insert(row.end(), {ms("device_s"), ms("device_self_s")});
    const double self_s = number_field(one, has_device_times ? "device_self_s" : "self_s");
    row.push_back(fmt::format("{:.1f}", all_s > 0 ? 100 * self_s / all_s : 0));
    table.add(row);
  }
  return table.text(kWidth);
}

std::string rank_text(const std::string& name, double steps, const Json& rank) {
  const auto ms = [&](const char* key) { return 1e3 * number_field(rank, key) / steps; };
  std::string text = wrapped(
      fmt::format("{}: a step took {:.2f} ms: {:.2f} ms of computing, of which {:.2f} ms waiting for samples, and "
                  "{:.2f} ms waiting for other ranks. {} of its operators:",
                  name, ms("seconds"), ms("compute_s"), ms("data_wait_s"), ms("wait_s"),
                  rank.contains("device_s") ? "CPU time and device time" : "CPU time"),
      kWidth);
  return text + operator_table(rank);
}

/// What the ranks had no room for in the trace.
std::string unprofiled_text(const Json& ranks) {
  double operators = 0, values = 0;
  for (const Json& rank : ranks) {
    operators += number_field(rank, "left_out_of_trace");
    values += number_field(rank, "counters_left_out_of_trace");
  }
  if (operators + values == 0) return "";
  return wrapped(fmt::format("It lacks the last {:.0f} operators and {:.0f} values of counters of these steps: a rank "
                             "keeps 200,000 of each; fewer steps give all.",
                             operators, values),
                 kWidth);
}

}  // namespace

std::string profile_text(const Json& report) {
  if (!report.contains("profile") || !report["profile"].is_object()) return "";
  const Json& profile = report["profile"];
  const double steps = number_field(profile, "steps");
  if (!(steps > 0)) return "profile         nothing to record: the run ended within its first three steps\n";
  const double first = number_field(profile, "first_step");
  std::string text = fmt::format("profile of the steps {:.0f} to {:.0f}\n", first, first + steps - 1);
  const std::vector<std::string> names = device_names(report);
  const Json ranks = list_field(profile, "devices");
  for (size_t rank = 0; rank < ranks.size() && rank < names.size(); ++rank)
    text += "\n" + rank_text(fmt::format("rank {}, {}", rank, names[rank]), steps, ranks[rank]);
  if (const std::string trace = text_field(profile, "trace"); !trace.empty())
    text += fmt::format("\nThe trace is {}; ui.perfetto.dev and chrome://tracing open it.\n", printable(trace)) +
            unprofiled_text(ranks);
  return text;
}

}  // namespace remuda::cli

#include "cli/train/run_compression.h"

#include <cmath>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/train/report_text.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

Json compression_of(const Json& report) { return report.value("compression", Json::object()); }

std::string duration(double seconds) {
  if (seconds < 0.1) return fmt::format("{:.1f} ms", 1e3 * seconds);
  return fmt::format("{:.2f} s", seconds);
}

/// "13.2 MiB and 1.29 s"; empty where no steps are known.
std::string costs_of(const Json& compression, const char* which) {
  const Json steps = compression.value(which, Json::object());
  if (!steps.is_object() || !steps.contains("step_s")) return "";
  return fmt::format("{} and {}", human_bytes(workers::number_field(steps, "sent_bytes")),
                     duration(workers::number_field(steps, "step_s")));
}

/// Steps, after which the other ones are exchanged in another way.
double steps_before(const Json& compression) {
  return workers::number_field(compression.value("before", Json::object()), "steps",
                               workers::number_field(compression, "after_steps"));
}

/// What hosts send: what was chosen, or what the job says.
std::string sent(const Json& compression) {
  return printable(workers::text_field(compression, "sends", workers::text_field(compression, "kind", "-")));
}

/// Of what was chosen; NaN where nothing was.
double expected_s(const Json& compression) {
  const Json all = compression.value("expected", Json::array());
  for (size_t i = 0; all.is_array() && i < all.size(); ++i)
    if (workers::text_field(all[i], "sends") == workers::text_field(compression, "sends", "-"))
      return workers::number_field(all[i], "step_s", NAN);
  return NAN;
}

}  // namespace

std::string compression_line(const Json& report) {
  const Json compression = compression_of(report);
  if (!compression.is_object() || compression.empty()) return "";
  const std::string before = costs_of(compression, "before"), since = costs_of(compression, "since");
  const std::string why_not = printable(workers::text_field(compression, "why_not"));
  if (before.empty() && since.empty()) return why_not.empty() ? "none: no step was made" : "none: " + why_not;
  if (since.empty())
    return fmt::format("none, {} a step: {}", before, why_not.empty() ? "the run ended in the warm-up" : why_not);
  return fmt::format("{} after step {:.0f}: {} a step{}", sent(compression), steps_before(compression), since,
                     before.empty() ? "" : ", in place of " + before);
}

std::string compression_text(const Json& report) {
  const Json compression = compression_of(report);
  const double expected = expected_s(compression);
  if (std::isnan(expected)) return "";
  const double took = workers::number_field(compression.value("since", Json::object()), "step_s", NAN);
  return fmt::format("What hosts send was chosen after step {:.0f}: {}. So it is {}{}.",
                     workers::number_field(compression, "chosen_after"),
                     printable(workers::text_field(compression, "chosen", "-")), sent(compression),
                     std::isnan(took) ? std::string(", but no step was made with it")
                                      : fmt::format("; such a step was expected to take {}, and took {}",
                                                    duration(expected), duration(took)));
}

std::string why_no_compression(const Json& report) {
  const Json job = report.value("job", Json::object());
  const auto key = [&](const char* name) { return job.is_object() ? workers::text_field(job, name) : ""; };
  if (key("memory.parameters") == "sharded") return "memory.parameters is \"sharded\"";
  if (const std::string lost = key("elastic.ranks_lost"); !lost.empty() && lost != "0")
    return "elastic.ranks_lost is set";
  for (const Json& device : report.value("devices", Json::array()))
    if (workers::text_field(device, "role") == "state") return "a device has the role state";
  return "";
}

}  // namespace remuda::cli

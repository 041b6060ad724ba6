#include "cli/jobs/turn_flags.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/text.h"

namespace remuda::cli {

void add_turn_options(CLI::App& command, TurnFlags& flags) {
  command.add_option("--priority", flags.priority, "Higher goes first")
      ->type_name("N")
      ->group(kHowItRuns)
      ->check(CLI::Range(-1000, 1000));
  command.add_option("--time-limit", flags.time_limit, "End it after so long: 90s, 15m, 2h")
      ->type_name("TIME")
      ->group(kHowItRuns);
  command.add_flag("--no-wait", flags.no_wait, "Start now or not at all")->group(kHowItRuns);
}

Result<void> apply_turn(const TurnFlags& flags, run::RunSpec& spec) {
  REMUDA_ASSIGN(spec.job.time_limit_s, duration_of("--time-limit", flags.time_limit));
  spec.job.priority = flags.priority;
  spec.wait = !flags.no_wait;
  return {};
}

Result<double> duration_of(const char* flag, const std::string& text) {
  if (text.empty()) return 0;
  if (const auto seconds = parse_duration(text)) return *seconds;
  return usage_error(fmt::format("{}: '{}' is no time; write 90s, 15m, 2h or 1d", flag, printable(text)));
}

}  // namespace remuda::cli

#include "cli/watch/source_flags.h"

#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/number.h"
#include "cli/watch/live_source.h"
#include "cli/watch/watch_loop.h"
#include "process/user_name.h"
#include "snapshot/demo.h"
#include "snapshot/replay_source.h"

namespace remuda::cli {
namespace {

constexpr double kDemoSpeed = 10, kMostSpeed = 1000;

/// CLI::Range lets "nan" pass.
std::string check_speed(const std::string& text) {
  const auto speed = parse_number<double>(text);
  if (speed && *speed >= 0 && *speed <= kMostSpeed) return "";
  return fmt::format("'{}' is no number from 0 to {}", text, kMostSpeed);
}

}  // namespace

void add_source_options(CLI::App& command, SourceFlags& flags) {
  auto* replay =
      command.add_option("--replay", flags.replay, "Play a recording in place of this machine; several: several hosts")
          ->type_name("FILE");
  auto* demo = command.add_flag("--demo", flags.demo, "Play the recording that comes with remuda");
  command.add_option("--speed", flags.speed, "Play so many times as fast")->type_name("FACTOR")->check(check_speed);
  add_machine_options(command, flags.machine);
  replay->excludes("--machine");
  demo->excludes("--machine");
}

Result<std::unique_ptr<snapshot::Source>> open_source(const SourceFlags& flags) {
  if (!flags.is_recording()) {
    REMUDA_ASSIGN(std::string folder, watch_folder(flags.machine.file));
    return std::make_unique<LiveSource>(flags.machine, std::move(folder),
                                        process::user_name(static_cast<int>(::geteuid())), flags.reports);
  }
  std::vector<snapshot::Recording> recordings;
  if (flags.demo) {
    REMUDA_ASSIGN(snapshot::Recording demo, snapshot::parse_recording(snapshot::demo_recording(), "the demo"));
    recordings.push_back(std::move(demo));
  }
  for (const std::string& file : flags.replay) {
    REMUDA_ASSIGN(snapshot::Recording recording, snapshot::read_recording(file));
    recordings.push_back(std::move(recording));
  }
  const double speed = flags.demo ? kDemoSpeed * flags.speed : flags.speed;
  return std::make_unique<snapshot::ReplaySource>(std::move(recordings), steady_clock(),
                                                  snapshot::Playback{.speed = speed});
}

}  // namespace remuda::cli

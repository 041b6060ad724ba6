// SourceFlags: what `remuda web` and `remuda top` show: this machine, or recordings that are played.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/watch/alert_reports.h"
#include "snapshot/source.h"

namespace remuda::cli {

struct SourceFlags {
  MachineFlags machine;
  std::vector<std::string> replay;
  bool demo = false;
  double speed = 1;
  ReportFlags reports;  ///< of alerts, where this process keeps the history of this machine

  bool is_recording() const { return demo || !replay.empty(); }
};

/// Declares --replay, --demo, --speed, --machine and --cpu-devices. `flags` must live as long as the command's action.
void add_source_options(CLI::App& command, SourceFlags& flags);

Result<std::unique_ptr<snapshot::Source>> open_source(const SourceFlags& flags);

}  // namespace remuda::cli

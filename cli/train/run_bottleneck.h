// What held a training run back most: data, imbalance, communication, memory, or nothing but the computing itself.
// Pure.
//
// All ranks make a step together, so it takes as long for each. Its time is what these parts add up to, measured of the
// rank that the others waited for most:
//
//   data           waiting for samples
//   communication  blocked by the exchange itself: of each step, what the rank that waited least has waited
//   memory         computing again what there was no room to keep
//   compute        the rest of its computing, if each device had what it can do in the same time
//   imbalance      what is left: what a better split saves, and speeds that change from step to step
//
// A single rank waits for nobody: its waits are left out. Where one device alone would have been faster than all of
// them, that is what held the run back, whatever its parts are (run_together.h).
#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace remuda::cli {

enum class Limit { data, imbalance, communication, memory, compute, devices };
const char* to_string(Limit limit);

/// As parts of the time of a step; their sum is 1.
struct StepParts {
  double data = 0, imbalance = 0, communication = 0, memory = 0, compute = 0;
};

/// Nothing for a report without times, or of a run of so few steps that their start was all of it.
std::optional<StepParts> step_parts(const Json& report);

struct Bottleneck {
  Limit limit = Limit::compute;  ///< the largest part but compute, where it is a tenth at least; or devices
  double share = 0;              ///< of devices: the part of a step that the fastest one alone would save
  std::string sentence;          ///< with its share, and what would help by how much
};

/// Of a report as `remuda train --json` writes it, or as it was before that knew of this.
std::optional<Bottleneck> bottleneck_of(const Json& report);

/// Its sentence; empty where nothing is known.
std::string bottleneck_text(const Json& report);

/// The field `bottleneck` of a report (docs/run-report.md); null where nothing is known.
Json bottleneck_json(const Json& report);

}  // namespace remuda::cli

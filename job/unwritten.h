// Unwritten: an output of a run that could not be written, and why; docs/run-report.md has it as `unwritten[]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace remuda::job {

struct Unwritten {
  std::string output;  ///< "weights", "checkpoint" (the last one), "trace", "tensorboard", "step_times"
  std::string why;     ///< names the file
  uint64_t bytes = 0;  ///< that it takes; 0: not known
  std::optional<uint64_t> free_bytes = std::nullopt;  ///< where it should be; nothing: not known
};

/// With what is free in that folder, or in the one that the file belongs to.
Unwritten unwritten(std::string output, std::string why, const std::string& path, uint64_t bytes = 0);

Json to_json(const Unwritten& unwritten);
/// Those of a report; a field of any other type counts as absent.
std::vector<Unwritten> unwritten_in(const Json& report);

/// "the weights: cannot write FILE: No space left on device (8.1 MiB are needed, 12.0 KiB are free)". Without a full
/// stop.
std::string text_of(const Unwritten& unwritten);
/// All of them as one sentence; empty where there are none.
std::string unwritten_text(const std::vector<Unwritten>& all);

}  // namespace remuda::job

// Trace: the tracks of all ranks as one file in the JSON Trace Event Format, which Perfetto (ui.perfetto.dev) and
// Chrome (chrome://tracing) open. A rank is a process there, a track a thread of it; spans are complete events ("X"),
// values of counters counter events ("C").
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "profile/recorder.h"

namespace remuda::profile {

/// One rank in the trace.
struct Process {
  int rank = 0;
  std::string name;   ///< "rank 0, cpu:0"
  double zero_s = 0;  ///< time 0 of the trace, on the clock of the rank's recorder
};

/// What a file begins with. `about` is what viewers show of the trace as a whole.
std::string trace_head(const Json& about);
/// The events of one rank: a line each, with a comma after each but, with `is_last`, the last.
std::string trace_events(const Process& process, std::span<const TrackRecord> tracks,
                         std::span<const CounterRecord> counters, bool is_last);
/// What it ends with.
std::string trace_end();

}  // namespace remuda::profile

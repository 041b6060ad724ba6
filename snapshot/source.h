// Source: where the facts come from that page and terminal show, a recording or the live machine. What it answers is
// JSON; docs/web.md says what stands in it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "snapshot/history.h"
#include "snapshot/set_score.h"

namespace remuda::snapshot {

enum class Metrics {
  own,   ///< names of remuda
  dcgm,  ///< names of dcgm-exporter
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Everything that is shown now. From one thread, always the same. An error is one that people can act on; the
  /// next call may succeed.
  virtual Result<Json> snapshot() = 0;
  /// What a device did. Several calls at a time, beside snapshot(), from any thread. A usage error for a device or a
  /// measure that is not there.
  virtual Result<History> history(const HistoryQuery& query) = 0;
  /// What devices are worth as a set (set_score.h); from any thread, likewise.
  virtual Result<Json> set_score(const SetQuery&) { return usage_error("this source has no machine"); }
  /// The text of that format for Prometheus; from any thread, likewise.
  virtual Result<std::string> metrics(Metrics) { return usage_error("a recording has no metrics"); }
};

}  // namespace remuda::snapshot

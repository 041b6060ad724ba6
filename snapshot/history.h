// History: what a device did over some time, in steps of one length. A step of which nothing is known is empty, never
// 0.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/inventory.h"

namespace remuda::snapshot {

/// What can be asked for, by the names of Status; "throttled" is 1 where clocks are held down by heat or power, and
/// "waiting" the part of the time for which the device waited for others of a run.
inline constexpr std::array kMeasures{"busy",        "memory_busy",       "sm_active",     "tensor_active",
                                      "dram_active", "power_watts",       "temperature_c", "sm_clock_mhz",
                                      "throttled",   "memory_used_bytes", "waiting"};

struct HistoryQuery {
  std::string host;  ///< empty: the first
  std::string device;
  std::vector<std::string> measures;
  double from_s = 0, to_s = 0;  ///< seconds since 1970; from < to
  int points = 0;               ///< 1 to kMostPoints
};
inline constexpr int kMostPoints = 2000;

using Series = std::vector<std::optional<double>>;
struct History {
  std::string device;
  double start_s = 0, step_s = 0;
  std::vector<std::pair<std::string, Series>> measures;
};

/// {"device", "start_s", "step_s", "measures": {"busy": [0.1, null, ...]}}
Json to_json(const History& history);

/// The history of which nothing is known: as many empty steps as were asked for.
History unknown_history(const HistoryQuery& query);

/// Nothing for a query that keeps the rules above; a usage error otherwise.
Result<void> check(const HistoryQuery& query);

/// The samples, which say nothing of waiting, of the device that is the `index`-th of each, `query` at a time: the mean
/// of a step's samples. A step that is shorter than the time between two samples has the value of the one before it, as
/// long as that is no older than twice the usual time between samples. Pure.
History history_of(std::span<const Sample> samples, size_t index, const HistoryQuery& query);

}  // namespace remuda::snapshot

#include "snapshot/history.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "device/throttle.h"

namespace remuda::snapshot {
namespace {

std::optional<double> number(const Reading<double>& reading) {
  return reading.has_value() ? std::optional(reading.value()) : std::nullopt;
}
template <typename T>
std::optional<double> number(const Reading<T>& reading) {
  return reading.has_value() ? std::optional(static_cast<double>(reading.value())) : std::nullopt;
}

std::optional<double> value_of(const Status& status, std::string_view measure) {
  if (measure == "busy") return number(status.busy);
  if (measure == "memory_busy") return number(status.memory_busy);
  if (measure == "sm_active") return number(status.sm_active);
  if (measure == "tensor_active") return number(status.tensor_active);
  if (measure == "dram_active") return number(status.dram_active);
  if (measure == "memory_used_bytes") return number(status.memory_used_bytes);
  if (measure == "power_watts") return number(status.power_watts);
  if (measure == "temperature_c") return number(status.temperature_c);
  if (measure == "sm_clock_mhz") return number(status.sm_clock_mhz);
  if (measure == "throttled") return number(is_throttled(status));
  return std::nullopt;
}

/// The median of the times between samples.
double usual_gap_s(std::span<const Sample> samples) {
  std::vector<double> gaps;
  for (size_t i = 1; i < samples.size(); ++i) gaps.push_back(samples[i].time_s - samples[i - 1].time_s);
  if (gaps.empty()) return 0;
  const auto middle = gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2);
  std::ranges::nth_element(gaps, middle);
  return *middle;
}

std::optional<double> mean(std::span<const Sample> samples, size_t index, std::string_view measure) {
  double sum = 0;
  int count = 0;
  for (const Sample& sample : samples)
    if (const auto value = value_of(sample.devices[index], measure)) sum += *value, ++count;
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

Json to_json(const History& history) {
  Json measures = Json::object();
  for (const auto& [measure, series] : history.measures) {
    Json& list = measures[measure] = Json::array();
    for (const auto& value : series) list.push_back(value ? Json(*value) : Json());
  }
  return Json{{"device", history.device},
              {"start_s", history.start_s},
              {"step_s", history.step_s},
              {"measures", std::move(measures)}};
}

History unknown_history(const HistoryQuery& query) {
  History history{query.device, query.from_s, (query.to_s - query.from_s) / query.points, {}};
  for (const std::string& measure : query.measures)
    history.measures.emplace_back(measure, Series(static_cast<size_t>(query.points)));
  return history;
}

Result<void> check(const HistoryQuery& query) {
  if (query.measures.empty() || query.measures.size() > kMeasures.size())
    return usage_error(fmt::format("measures: 1 to {} of them can be asked for", kMeasures.size()));
  for (const std::string& measure : query.measures)
    if (std::ranges::find(kMeasures, measure) == kMeasures.end())
      return usage_error(
          fmt::format("measures: there is no '{}'; there are {}", printable(measure), fmt::join(kMeasures, ", ")));
  if (!std::isfinite(query.from_s) || !std::isfinite(query.to_s) || query.from_s >= query.to_s)
    return usage_error("from and to must be seconds since 1970, the first less than the second");
  if (query.points < 1 || query.points > kMostPoints)
    return usage_error(fmt::format("points must be a number from 1 to {}", kMostPoints));
  return {};
}

History history_of(std::span<const Sample> samples, size_t index, const HistoryQuery& query) {
  History history = unknown_history(query);
  const double patience_s = 2 * usual_gap_s(samples);
  const auto at = [&](double time_s) { return std::ranges::lower_bound(samples, time_s, {}, &Sample::time_s); };
  for (auto& [measure, series] : history.measures)
    for (size_t i = 0; i < series.size(); ++i) {
      const double from_s = query.from_s + static_cast<double>(i) * history.step_s;
      const auto first = at(from_s), last = at(from_s + history.step_s);
      if (first != last)
        series[i] = mean({first, last}, index, measure);
      else if (first != samples.begin() && from_s - std::prev(first)->time_s <= patience_s && first != samples.end())
        series[i] = value_of(std::prev(first)->devices[index], measure);
    }
  return history;
}

}  // namespace remuda::snapshot

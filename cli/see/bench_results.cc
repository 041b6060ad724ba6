#include "cli/see/bench_results.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"
#include "device/fields.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

using measure::Phase;
using measure::Subject;

constexpr const char* kNothingSensible = "what came back makes no sense";
constexpr const char* kNothing = "nothing came back";

std::optional<double> positive(const Json& event, const char* key) {
  const double value = workers::number_field(event, key);
  return value > 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool is_positive(const Reading<double>& reading) { return !reading.has_value() || reading.value() > 0; }

bool makes_sense(const MeasuredDevice& device, const std::string& id) {
  return device.id == id && is_positive(device.host_to_device_gbps) && is_positive(device.device_to_host_gbps) &&
         is_positive(device.latency_us) &&
         std::ranges::all_of(device.gemm, [](const auto& gemm) { return gemm.tflops > 0; });
}

}  // namespace

BenchResults::BenchResults(measure::Plan plan, double time_s)
    : plan_(std::move(plan)), time_s_(time_s), phases_(measure::phases(plan_)), results_(phases_.size()) {}

void BenchResults::take(const Json& event) {
  const double number = workers::number_field(event, "phase", -1);
  if (!(number >= 0 && number < static_cast<double>(phases_.size()))) return;
  const auto i = static_cast<size_t>(number);
  const std::string name = workers::text_field(event, "event");
  if (name == "phase") current_ = i;
  if (name == "measured") take_figures(event, phases_[i], results_[i]);
  if (name == "unmeasured")
    results_[i] = {.ended = true, .why = printable(workers::text_field(event, "why", kNothing))};
}

void BenchResults::take_figures(const Json& event, const measure::Phase& phase, PhaseResult& result) {
  result = {.ended = true};
  bool sensible = false;
  switch (phase.subject) {
    case measure::Subject::device:
      sensible = event.contains("device") && fields::read(event["device"], "device", result.device) &&
                 makes_sense(result.device, plan_.devices[phase.device].id);
      result.memory_copy_gbps = positive(event, "memory_copy_gbps");
      result.device.time_s = time_s_;
      break;
    case measure::Subject::pull:
      result.gbps = positive(event, "gbps");
      sensible = result.gbps.has_value();
      break;
    case measure::Subject::latency:
      result.latency_us = positive(event, "latency_us");
      sensible = result.latency_us.has_value();
      break;
  }
  if (!sensible) result = {.ended = true, .why = kNothingSensible};
}

std::string BenchResults::status() const {
  return fmt::format("measuring {}", measure::name_of(plan_, phases_[current_]));
}

double BenchResults::done() const { return static_cast<double>(current_) / static_cast<double>(phases_.size()); }

std::vector<MeasuredDevice> BenchResults::devices() const {
  std::vector<MeasuredDevice> measured;
  for (size_t i = 0; i < phases_.size(); ++i)
    if (phases_[i].subject == measure::Subject::device && results_[i].ended && results_[i].why.empty())
      measured.push_back(results_[i].device);
  return measured;
}

// A pair is three phases in a row: pulled one way, pulled the other way, latency.
std::vector<MeasuredLink> BenchResults::links() const {
  std::vector<MeasuredLink> measured;
  for (size_t i = 2; i < phases_.size(); ++i) {
    if (phases_[i].subject != measure::Subject::latency) continue;
    const auto &one = results_[i - 2].gbps, &other = results_[i - 1].gbps;
    if (!one || !other) continue;
    MeasuredLink link{.a = plan_.devices[phases_[i].device].id, .b = plan_.devices[phases_[i].peer].id};
    link.time_s = time_s_;
    link.gbps = std::min(*one, *other);
    if (results_[i].latency_us) link.latency_us = *results_[i].latency_us;
    measured.push_back(std::move(link));
  }
  return measured;
}

std::optional<double> BenchResults::memory_copy_gbps(const std::string& id) const {
  for (const PhaseResult& result : results_)
    if (result.device.id == id) return result.memory_copy_gbps;
  return std::nullopt;
}

std::string BenchResults::names_where(const std::string& why) const {
  std::vector<size_t> devices;
  std::string names;
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (results_[i].why != why) continue;
    const bool known = std::ranges::any_of(
        devices, [&](size_t device) { return device == phases_[i].device || device == phases_[i].peer; });
    if (known) continue;
    if (phases_[i].subject == measure::Subject::device) devices.push_back(phases_[i].device);
    names += (names.empty() ? "" : ", ") + measure::name_of(plan_, phases_[i]);
  }
  return names;
}

std::map<std::string, std::string> BenchResults::unmeasured() const {
  std::map<std::string, std::string> all;
  for (const PhaseResult& result : results_)
    if (!result.why.empty()) all[result.why] = names_where(result.why);
  return all;
}

}  // namespace remuda::cli

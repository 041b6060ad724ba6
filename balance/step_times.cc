#include "balance/step_times.h"

#include <cmath>
#include <fmt/format.h>

#include "base/json.h"

namespace remuda::balance {
namespace {

constexpr int kFormat = 1;

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

std::vector<double> microseconds(std::vector<double> times) {
  for (double& seconds : times) seconds = microseconds(seconds);
  return times;
}

StepTimesHead head_of(const Json& json) {
  StepTimesHead head{.global_batch = json.at("global_batch").get<int>()};
  for (const Json& one : json.at("devices")) {
    TimedDevice device{one.at("id").get<std::string>(), one.at("slowdown").get<double>()};
    for (const Json& time : one.at("alone"))
      device.alone.push_back({time.at("batch").get<int>(), time.at("seconds").get<double>()});
    head.devices.push_back(std::move(device));
  }
  return head;
}

TimedStep step_of(const Json& json) {
  return {json.at("step").get<int>(), json.at("shares").get<std::vector<int>>(),
          json.at("compute_s").get<std::vector<double>>(), json.at("wait_s").get<std::vector<double>>()};
}

/// The fault of the head; empty when there is none.
std::string fault_of(const Json& json, const StepTimesHead& head) {
  if (json.at("step_times") != kFormat) return fmt::format("these step times are not of format {}", kFormat);
  if (head.global_batch <= 0 || head.devices.empty()) return "the head names no batch or no devices";
  for (const TimedDevice& device : head.devices)
    for (const BatchTime& time : device.alone)
      if (time.batch <= 0 || !(time.seconds > 0)) return "a time measured alone is not positive";
  return "";
}

std::string fault_of(const TimedStep& step, size_t devices) {
  if (step.shares.size() != devices || step.compute_s.size() != devices || step.wait_s.size() != devices)
    return fmt::format("a step has one number per device, and there are {}", devices);
  for (size_t i = 0; i < devices; ++i)
    if (step.shares[i] < 0 || !(step.compute_s[i] >= 0) || !(step.wait_s[i] >= 0)) return "a number is negative";
  return "";
}

/// Adds one line to the times. Returns its fault; empty when there is none.
std::string take(const Json& json, StepTimes& times) {
  try {
    if (times.head.devices.empty()) {
      times.head = head_of(json);
      return fault_of(json, times.head);
    }
    times.steps.push_back(step_of(json));
    return fault_of(times.steps.back(), times.head.devices.size());
  } catch (const Json::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string step_times_line(const StepTimesHead& head) {
  Json devices = Json::array();
  for (const TimedDevice& device : head.devices) {
    Json alone = Json::array();
    for (const BatchTime& time : device.alone)
      alone.push_back({{"batch", time.batch}, {"seconds", microseconds(time.seconds)}});
    devices.push_back({{"id", device.id}, {"slowdown", device.slowdown}, {"alone", std::move(alone)}});
  }
  return to_line({{"step_times", kFormat}, {"global_batch", head.global_batch}, {"devices", std::move(devices)}});
}

std::string step_times_line(const TimedStep& step) {
  return to_line({{"step", step.step},
                  {"shares", step.shares},
                  {"compute_s", microseconds(step.compute_s)},
                  {"wait_s", microseconds(step.wait_s)}});
}

Result<StepTimes> parse_step_times(std::string_view text, std::string_view where) {
  StepTimes times;
  int number = 0;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string place = fmt::format("{}, line {}", where, ++number);
    REMUDA_ASSIGN(const Json json, parse_json(text.substr(0, end), place));
    if (const std::string fault = take(json, times); !fault.empty()) return failed(fmt::format("{}: {}", place, fault));
    text.remove_prefix(end + 1);
  }
  if (times.steps.empty()) return failed(fmt::format("{} holds no steps", where));
  return times;
}

}  // namespace remuda::balance

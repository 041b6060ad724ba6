#include "snapshot/events.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "snapshot/entry.h"

namespace remuda::snapshot {
namespace {

std::string kind_of(const std::string& rule) {
  if (rule == "throttled") return rule;
  return rule == "device error" || rule == "device lost" ? "error" : "alert";
}

std::map<std::string, double> shares_of(const Json& run) {
  std::map<std::string, double> shares;
  if (const auto parts = run.find("parts"); parts != run.end() && parts->is_array())
    for (const Json& part : *parts)
      if (part.is_object() && !value_in<std::string>(part, "device").empty())
        shares[value_in<std::string>(part, "device")] = value_in(part, "share", 0.0);
  return shares;
}

std::vector<std::string> names_of(const std::map<std::string, double>& shares) {
  std::vector<std::string> names;
  for (const auto& [name, _] : shares) names.push_back(name);
  return names;
}

/// What people would call another split: a hundredth of the work, or more, goes elsewhere.
bool is_other_split(const std::map<std::string, double>& before, const std::map<std::string, double>& now) {
  constexpr double kSame = 0.01;
  if (names_of(before) != names_of(now)) return false;  // they are other ranks
  return std::ranges::any_of(now,
                             [&](const auto& one) { return std::abs(one.second - before.at(one.first)) >= kSame; });
}

std::string split_text(const std::map<std::string, double>& shares) {
  std::string text;
  for (const auto& [_, share] : shares) text += fmt::format("{}{:.0f} %", text.empty() ? "" : " and ", 100 * share);
  return text;
}

/// As many are known as can be told again: of the oldest nothing is remembered.
constexpr size_t kMostKnown = 4 * EventLog::kMost;

}  // namespace

void EventLog::add(Event event) {
  const auto place = std::ranges::upper_bound(events_, event.time_s, {}, &Event::time_s);
  events_.insert(place, std::move(event));
  if (events_.size() <= kMost) return;
  const auto of_job = std::ranges::find_if(events_, [](const Event& one) { return one.job != 0; });
  events_.erase(of_job != events_.end() ? of_job : events_.begin());
}

void EventLog::take_alert(const Json& alert, const std::set<std::pair<std::string, double>>& before) {
  const double begun_s = std::max(value_in(alert, "since_s", 0.0), value_in(alert, "raised_s", 0.0));
  const std::string rule = value_in<std::string>(alert, "rule"), device = value_in<std::string>(alert, "device");
  const std::pair key(rule + '\n' + device, begun_s);
  if (begun_s <= 0 || !alerts_.insert(key).second || before.contains(key)) return;
  const std::string text = value_in<std::string>(alert, "text");
  add({begun_s, kind_of(rule), {device}, 0, text.empty() ? rule : fmt::format("{}: {}", rule, text)});
}

void EventLog::take_run(const Json& entry, double time_s) {
  const auto found = entry.find("run");
  const auto job = value_in<int64_t>(entry, "job");
  if (job <= 0 || found == entry.end() || !found->is_object()) return;
  const double at_s = value_in(*found, "at_s", time_s);
  const Run now{value_in<int64_t>(*found, "step"), value_in<int64_t>(*found, "checkpoint_step"), shares_of(*found)};
  const auto [place, is_new] = runs_.try_emplace(job, now);
  const Run before = std::exchange(place->second, now);
  if (runs_.size() > kMostKnown) runs_.erase(runs_.begin());
  const std::vector<std::string> devices = names_of(now.shares);
  const bool began_again = now.step < before.step;
  if (began_again) add({at_s, "restart", devices, job, fmt::format("it goes on from step {}", now.step)});
  if (now.checkpoint_step > 0 && (is_new || now.checkpoint_step != before.checkpoint_step))
    add({at_s - value_in(*found, "checkpoint_age_s", 0.0), "checkpoint", devices, job,
         fmt::format("checkpoint after step {}", now.checkpoint_step)});
  if (!began_again && is_other_split(before.shares, now.shares))
    add({at_s, "rebalance", devices, job,
         fmt::format("each step was split {}, now {}", split_text(before.shares), split_text(now.shares))});
}

void EventLog::take(const Seen& seen) {
  const auto before = std::exchange(alerts_, {});
  if (seen.alerts.is_array())
    for (const Json& alert : seen.alerts)
      if (alert.is_object()) take_alert(alert, before);
  if (!seen.runs.is_array()) return;
  for (const Json& entry : seen.runs)
    if (entry.is_object()) take_run(entry, seen.time_s);
}

void EventLog::take_told(const Json& events) {
  if (!events.is_array()) return;
  for (const Json& entry : events) {
    if (!entry.is_object() || value_in(entry, "time_s", 0.0) <= 0) continue;
    Event event{value_in(entry, "time_s", 0.0),
                value_in<std::string>(entry, "kind"),
                {},
                value_in<int64_t>(entry, "job"),
                value_in<std::string>(entry, "text")};
    if (const auto devices = entry.find("devices"); devices != entry.end() && devices->is_array())
      for (const Json& device : *devices)
        if (device.is_string()) event.devices.push_back(device);
    add(std::move(event));
  }
}

void EventLog::take_errors(const Inventory& inventory) {
  for (size_t i = 0; i < inventory.devices.size(); ++i) {
    int64_t known = 0;
    bool is_first = true;
    for (const Sample& sample : inventory.samples) {
      if (i >= sample.devices.size() || !sample.devices[i].xid.has_value()) continue;
      const int64_t now = sample.devices[i].xid.value();
      if (now != 0 && now != known && !is_first)
        add({sample.time_s, "error", {inventory.devices[i].id}, 0, fmt::format("the driver reports error {}", now)});
      known = now, is_first = false;
    }
  }
}

void EventLog::take_restart(int64_t job, double time_s, std::vector<std::string> devices) {
  const std::pair key(time_s, job);
  if (restarts_.size() >= kMostKnown && key < *restarts_.begin()) return;
  if (!restarts_.insert(key).second) return;
  if (restarts_.size() > kMostKnown) restarts_.erase(restarts_.begin());
  add({time_s, "restart", std::move(devices), job, "it was queued again"});
}

Json EventLog::until(double time_s) const {
  Json list = Json::array();
  for (const Event& event : events_) {
    if (event.time_s > time_s) break;
    Json one{{"time_s", event.time_s}, {"kind", event.kind}, {"devices", event.devices}};
    if (event.job != 0) one["job"] = event.job;
    one["text"] = event.text;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace remuda::snapshot

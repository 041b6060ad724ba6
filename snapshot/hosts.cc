#include "snapshot/hosts.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/duration.h"
#include "device/inventory.h"

namespace remuda::snapshot {
namespace {

constexpr const char* kNotRead = "not read";

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  return found->is_string()                           ? found->get<std::string>()
         : found->is_primitive() && !found->is_null() ? found->dump()
                                                      : "";
}

template <typename T = double>
T number_of(const Json& json, const char* key, T otherwise = 0) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<T>() : otherwise;
}

/// The objects of a list; none where it is none.
std::vector<Json> entries(const Json& json, const char* key) {
  std::vector<Json> all;
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array()) return all;
  std::ranges::copy_if(*found, std::back_inserter(all), [](const Json& one) { return one.is_object(); });
  return all;
}

std::optional<double> part_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

Use use_in(const Json& lease) {
  const auto found = lease.find("use");
  if (found == lease.end() || !found->is_object()) return {};
  const auto part = [&](const char* some, const char* all) -> std::optional<double> {
    const double known_s = number_of(*found, all);
    return known_s > 0 ? std::optional(number_of(*found, some) / known_s) : std::nullopt;
  };
  return {part("busy_s", "busy_known_s"), part("effective_s", "effective_known_s"), part_in(*found, "cost"),
          found->value("cost_is_complete", Json(true)) == true, text_in(*found, "currency")};
}

Lease lease_in(const Json& json) {
  return {.job = number_of<int64_t>(json, "job"),
          .device = text_in(json, "device"),
          .user = text_in(json, "user"),
          .name = text_in(json, "name"),
          .holder = text_in(json, "holder"),
          .barred = text_in(json, "barred"),
          .since_s = number_of(json, "since_s"),
          .until_s = number_of(json, "until_s"),
          .share = number_of(json, "share", 1.0),
          .use = use_in(json)};
}

Waiting waiting_in(const Json& json) {
  const auto request = json.find("request");
  std::vector<std::string> would_start;
  for (const Json& one : entries(json, "would_start")) would_start.push_back(text_in(one, "change"));
  return {.id = number_of<int64_t>(json, "id"),
          .user = text_in(json, "user"),
          .name = text_in(json, "name"),
          .why = text_in(json, "why"),
          .submitted_s = number_of(json, "submitted_s"),
          .starts_s = number_of(json, "starts_s"),
          .count = request != json.end() && request->is_object() ? number_of<int>(*request, "count", 1) : 1,
          .would_start = std::move(would_start)};
}

Run run_in(const Json& json, const std::vector<View>& devices, double seen_s) {
  Run run{.job = number_of<int64_t>(json, "job"), .user = text_in(json, "user"), .name = text_in(json, "name")};
  const auto found = json.find("run");
  if (found == json.end() || !found->is_object()) return run;
  run.step = number_of<int64_t>(*found, "step"), run.steps = number_of<int64_t>(*found, "steps");
  run.step_s = number_of(*found, "step_s");
  run.checkpoint_step = number_of<int64_t>(*found, "checkpoint_step");
  run.checkpoint_every_s = number_of(*found, "checkpoint_every_s");
  run.checkpoint_age_s =
      number_of(*found, "checkpoint_age_s") + std::max(0.0, seen_s - number_of(*found, "at_s", seen_s));
  for (const Json& part : entries(*found, "parts")) {
    const std::string id = text_in(part, "device");
    const auto view = std::ranges::find(devices, id, [](const View& one) { return one.device.id; });
    run.parts.push_back({view == devices.end() ? id : view->label, part_in(part, "share"), part_in(part, "waiting")});
  }
  return run;
}

Alert alert_in(const Json& json) {
  return {.rule = text_in(json, "rule"),
          .device = text_in(json, "device"),
          .text = text_in(json, "text"),
          .value = text_in(json, "value"),
          .limit = text_in(json, "limit"),
          .command = text_in(json, "command"),
          .since_s = number_of(json, "since_s"),
          .acknowledged_by = text_in(json, "acknowledged_by"),
          .silenced_until_s = number_of(json, "silenced_until_s")};
}

State state_of(const View& view, const Host& host) {
  const Reading<double>& busy = view.device.status.busy;
  const auto has = [&](auto field) { return std::ranges::any_of(view.leases, field); };
  if (host.is_silent()) return State::unknown;
  if (!busy.has_value() && busy.missing().reason == MissingReason::lost) return State::lost;
  if (!host.knows_pool()) return State::unclear;
  if (has([](const Lease& lease) { return lease.job != 0; })) {
    if (!busy.has_value()) return State::held;
    return busy.value() > kIdle ? State::working : State::idle;
  }
  if (has([](const Lease& lease) { return !lease.holder.empty(); })) return State::foreign;
  return !view.drained.empty() || has([](const Lease& lease) { return !lease.barred.empty(); }) ? State::drained
                                                                                                : State::free;
}

/// A visitor of fields(): what a host said that has been silent since is no reading any more, but a reason.
struct Silence {
  const Missing& why;
  template <typename T>
  void operator()(const char*, Reading<T>& reading, const char*) const {
    reading = why;
  }
};

std::optional<double> held_for(const std::vector<Lease>& leases, double now_s) {
  std::optional<double> held_s;
  for (const Lease& lease : leases)
    if (lease.job != 0 && lease.since_s > 0) held_s = std::max(held_s.value_or(0), now_s - lease.since_s);
  return held_s;
}

View view_of(const Device& device, const Host& host, double now_s, const std::vector<Json>& drains) {
  View view{.key = host.name + "/" + device.label(),
            .label = device.label(),
            .model = device.model.empty() ? "model unknown" : device.model,
            .device = device};
  for (const Lease& lease : host.leases) {
    if (lease.device != device.id) continue;
    view.leases.push_back(lease);
    if (!lease.who().empty() && std::ranges::find(view.holders, lease.who()) == view.holders.end())
      view.holders.push_back(lease.who());
    if (!lease.barred.empty()) view.drained = lease.barred;
  }
  for (const Json& drain : drains)
    if (text_in(drain, "device") == device.id)
      view.drained = text_in(drain, "reason").empty() ? "drained" : text_in(drain, "reason");
  view.held_s = held_for(view.leases, now_s);
  view.state = state_of(view, host);
  if (!host.is_silent()) return view;
  const Missing why{MissingReason::stale,
                    fmt::format("{} has been silent for {}", host.name, duration_text(host.silent_s))};
  Silence silence{why};
  Status::fields(view.device.status, silence);
  return view;
}

/// GPUs and parts of them; the CPUs only where there is no GPU. A GPU that is cut into parts is those parts.
void add_devices(const Inventory& inventory, double now_s, const std::vector<Json>& drains, Host& host) {
  std::set<std::string> parents;
  for (const Device& device : inventory.devices) parents.insert(device.parent);
  const auto counts = [&](const Device& device) {
    return device.kind != DeviceKind::cpu && !parents.contains(device.id);
  };
  const bool has_gpu = std::ranges::any_of(inventory.devices, counts);
  for (const Device& device : inventory.devices)
    if (!has_gpu || counts(device)) host.devices.push_back(view_of(device, host, now_s, drains));
}

Result<Host> host_in(const Json& json, double now_s) {
  REMUDA_ASSIGN(const Inventory inventory, parse_inventory(to_line(json.at("inventory")), "the snapshot"));
  Host host{.name = text_in(json, "host")};
  const double seen_s = number_of(json, "seen_s", number_of(json, "time_s"));
  host.silent_s = std::max(0.0, now_s - seen_s);
  if (const auto agent = json.find("agent"); agent != json.end() && agent->is_object())
    host.has_silent_agent = true, host.known_s = number_of(*agent, "known_s");
  const Json jobs = json.value("jobs", Json());
  for (const Json& lease : entries(jobs, "leases")) host.leases.push_back(lease_in(lease));
  for (const Json& job : entries(jobs, "waiting")) host.waiting.push_back(waiting_in(job));
  for (const Json& alert : entries(json, "alerts")) host.alerts.push_back(alert_in(alert));
  add_devices(inventory, now_s, entries(json, "drains"), host);
  for (const Json& run : entries(json, "runs")) host.runs.push_back(run_in(run, host.devices, seen_s));
  return host;
}

}  // namespace

Result<Seen> seen_in(const Json& snapshot) {
  if (!snapshot.is_object()) return failed("the snapshot is no object");
  if (const std::string error = text_in(snapshot, "error"); !error.empty()) return failed(error);
  Seen seen{.time_s = number_of(snapshot, "time_s"), .is_recording = text_in(snapshot, "source") == "recording"};
  std::vector<Json> all = entries(snapshot, "others");
  all.insert(all.begin(), snapshot);
  for (const Json& json : all) {
    if (!json.contains("inventory")) continue;
    REMUDA_ASSIGN(Host host, host_in(json, seen.time_s));
    seen.hosts.push_back(std::move(host));
  }
  if (seen.hosts.empty()) return failed("the snapshot has no machine");
  return seen;
}

std::string reason_of(const Missing& missing) {
  if (missing.detail == kNotRead) return "";
  if (!missing.detail.empty()) return missing.detail;
  switch (missing.reason) {
    case MissingReason::unsupported:
      return "the driver does not report it";
    case MissingReason::denied:
      return "this user may not read it";
    case MissingReason::lost:
      return "the device does not answer any more";
    case MissingReason::stale:
      return "the last reading is too old";
    case MissingReason::no_driver:
      return "no driver is loaded for it";
  }
  return "";
}

const Series* series_of(const History& history, std::string_view measure) {
  for (const auto& [name, series] : history.measures)
    if (name == measure) return &series;
  return nullptr;
}

std::optional<double> idle_for(const Series& busy, double step_s) {
  auto last = busy.size();
  while (last > 0 && !busy[last - 1]) --last;
  auto first = last;
  while (first > 0 && busy[first - 1] && *busy[first - 1] <= kIdle) --first;
  return last == 0 ? std::nullopt : std::optional(static_cast<double>(last - first) * step_s);
}

std::optional<double> idle_for(const View& view, const Histories& histories) {
  constexpr double kLeast_s = 60;
  const auto history = histories.find(view.key);
  const Series* const busy = history == histories.end() ? nullptr : series_of(history->second, "busy");
  auto idle_s = busy ? idle_for(*busy, history->second.step_s) : std::nullopt;
  if (idle_s && view.held_s) idle_s = std::min(*idle_s, *view.held_s);
  return idle_s && *idle_s >= kLeast_s ? idle_s : std::nullopt;
}

}  // namespace remuda::snapshot

#include "snapshot/replay_source.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/fields.h"
#include "place/held.h"
#include "recorded/import.h"
#include "snapshot/entry.h"
#include "snapshot/hosts.h"
#include "snapshot/lease_use.h"
#include "snapshot/recorded_pool.h"

namespace remuda::snapshot {
namespace {

/// Those entries of a list that there are at `time_s`: begun, by the time in `since`, raised, where an alert says when
/// it was, and not ended.
Json present(const Json& list, const char* since, double time_s) {
  Json kept = Json::array();
  if (!list.is_array()) return kept;
  for (const Json& entry : list) {
    const double ended_s = value_in<double>(entry, "ended_s");
    const double begun_s = std::max(value_in<double>(entry, since), value_in<double>(entry, "raised_s"));
    if (begun_s <= time_s && (ended_s == 0 || ended_s > time_s)) kept.push_back(entry);
  }
  return kept;
}

/// The leases, each with what it was used for until then, as far as there are samples and nobody else has a part.
Json with_uses(Json leases, const Inventory& inventory, double time_s) {
  for (Json& lease : leases) {
    const bool is_known = lease.is_object() && lease.contains("job") && !lease.contains("use") &&
                          lease.contains("device") && lease["device"].is_string() && lease.value("share", Json(1)) == 1;
    if (is_known && !inventory.samples.empty())
      lease["use"] = use_between(inventory, lease["device"], value_in<double>(lease, "since_s"), time_s);
  }
  return leases;
}

Json ended(const Json& list, double time_s) {
  Json kept = Json::array();
  if (!list.is_array()) return kept;
  for (const Json& entry : list)
    if (const double ended_s = value_in<double>(entry, "ended_s"); ended_s > 0 && ended_s <= time_s)
      kept.push_back(entry);
  return kept;
}

/// The last sample that was taken by then; null where there is none.
const Sample* sample_at(const Inventory& inventory, double time_s) {
  const auto after = std::ranges::upper_bound(inventory.samples, time_s, {}, &Sample::time_s);
  return after == inventory.samples.begin() ? nullptr : &*std::prev(after);
}

/// The machine as it was then. What a sample says of a device takes the place of what the recording says of it.
Json inventory_at(const Inventory& inventory, double time_s) {
  Inventory bare = inventory;
  bare.samples.clear();
  const Sample* sample = sample_at(inventory, time_s);
  if (sample) bare.time_s = sample->time_s;
  Json json = to_json(bare);
  for (size_t i = 0; sample && i < sample->devices.size(); ++i) {
    Json& status = json["devices"][i]["status"];
    if (status.is_object())
      status.erase("processes");  // of the beginning: who uses it now is not known unless the sample says so
    status.update(fields::write(sample->devices[i]));
  }
  return json;
}

/// Whether something is done there, although no process of it is listed: those of other containers are not.
bool is_in_use(const Device& device) {
  constexpr double kMuchMemory = 0.25;  // more than screens need
  const Status& status = device.status;
  const double all = static_cast<double>(device.memory_bytes.value_or(0));
  return status.busy.value_or(0) > kIdle ||
         (all > 0 && static_cast<double>(status.memory_used_bytes.value_or(0)) > kMuchMemory * all);
}

/// Of a recording that says nothing of leases: who uses devices all the same, as a pool would list them.
Json users_of(const Json& machine) {
  const Inventory inventory = parse_inventory(to_line(machine), "the recording").value_or(Inventory{});
  Json users = Json::array();
  const auto add = [&](const std::string& device, const std::string& holder, double since_s) {
    users.push_back({{"device", device}, {"holder", holder}, {"share", 1.0}});
    if (since_s > 0) users.back()["since_s"] = since_s;
  };
  const std::vector<place::Held> held = place::held_by_processes(inventory);
  for (const place::Held& one : held) add(one.device, one.holder, one.since_s.value_or(0));
  for (const Device& device : inventory.devices)
    if (device.kind != DeviceKind::cpu && !device.partitioned.value_or(false) &&
        std::ranges::find(held, device.id, &place::Held::device) == held.end() && is_in_use(device))
      add(device.id, "somebody", 0);
  return users;
}

Json seen_at(const Recording& recording, double time_s) {
  const Json none = Json::object();
  const Json& jobs = recording.jobs.is_object() ? recording.jobs : none;
  const Json leases = jobs.value("leases", Json()), waiting = jobs.value("waiting", Json());
  const Sample* sample = sample_at(recording.inventory, time_s);
  const double seen_s = sample ? sample->time_s : time_s;
  Json host{{"version", 1}, {"time_s", seen_s}, {"host", recording.inventory.host}, {"seen_s", seen_s}};
  host["inventory"] = inventory_at(recording.inventory, time_s);
  host["jobs"] = {
      {"leases", recording.jobs.is_object() ? with_uses(present(leases, "since_s", time_s), recording.inventory, time_s)
                                            : users_of(host["inventory"])},
      {"waiting", present(waiting, "submitted_s", time_s)}};
  host["past"] = ended(leases, time_s);
  host["drains"] = present(recording.drains, "since_s", time_s);
  host["runs"] = present(recording.runs, "since_s", time_s);
  host["alerts"] = present(recording.alerts, "since_s", time_s);
  return host;
}

/// All that has happened in a recording.
EventLog events_of(const Recording& recording) {
  EventLog log;
  log.take_told(recording.events);
  log.take_errors(recording.inventory);
  log.take({recording.alerts, Json(), 0});
  std::vector<Json> runs;
  if (recording.runs.is_array())
    std::ranges::copy_if(recording.runs, std::back_inserter(runs), [](const Json& one) { return one.is_object(); });
  std::ranges::stable_sort(runs, {}, [](const Json& run) { return value_in<double>(run, "since_s"); });
  for (const Json& run : runs) log.take({Json(), Json::array({run}), value_in<double>(run, "since_s")});
  return log;
}

/// Adds what becomes of those that wait, and how users stand, where the recording does not say so itself.
void add_future(const Inventory& inventory, double time_s, pool::LatestOutlooks& outlooks, Json& host) {
  static const pool::Policy kNone;
  const RecordedPool recorded = recorded_pool(host, kNone);
  const auto& known = outlooks.of({recorded.state, inventory, recorded.held, kNone, time_s}, time_s);
  for (Json& job : host["jobs"]["waiting"]) {
    const bool is_told = !job.is_object() || job.contains("starts_s") || job.contains("starts_unknown");
    const auto outlook = is_told ? known.end() : known.find(static_cast<int64_t>(value_in<double>(job, "id")));
    if (outlook != known.end()) add_outlook(outlook->second, job);
  }
  Json fairness = standings_json(recorded.state, kNone, time_s);
  if (!fairness["users"].empty()) host["jobs"]["fairness"] = std::move(fairness);
}

/// What a run has reported of a device, over some time.
struct Reported {
  double since_s = 0, ended_s = 0;  ///< 0: it goes on
  double waiting = 0;
};

std::vector<Reported> reported_of(const Json& runs, const std::string& device) {
  std::vector<Reported> reported;
  if (!runs.is_array()) return reported;
  for (const Json& entry : runs) {
    const Json* const parts = entry.is_object() && entry.contains("run") && entry["run"].is_object() &&
                                      entry["run"].contains("parts") && entry["run"]["parts"].is_array()
                                  ? &entry["run"]["parts"]
                                  : nullptr;
    if (!parts) continue;
    for (const Json& part : *parts)
      if (part.is_object() && part.value("device", Json()) == device && part.value("waiting", Json()).is_number())
        reported.push_back({value_in<double>(entry, "since_s"), value_in<double>(entry, "ended_s"),
                            std::clamp(part["waiting"].get<double>(), 0.0, 1.0)});
  }
  return reported;
}

/// For how much of its time the device waited for others at that moment, as the runs report it; of several, the least.
std::optional<double> waiting_at(const std::vector<Reported>& reported, double time_s) {
  std::optional<double> least;
  for (const Reported& one : reported)
    if (one.since_s <= time_s && (one.ended_s == 0 || one.ended_s > time_s))
      least = std::min(least.value_or(one.waiting), one.waiting);
  return least;
}

Result<void> check_samples(const Inventory& inventory, std::string_view where) {
  if (std::ranges::is_sorted(inventory.samples, {}, &Sample::time_s)) return {};
  return usage_error(fmt::format("{}: its samples are not in the order of their times", where));
}

}  // namespace

Result<Recording> parse_recording(std::string_view text, std::string_view where) {
  REMUDA_ASSIGN(Inventory inventory, recorded::import_machine(text, where));
  REMUDA_TRY(check_samples(inventory, where));
  Recording recording{std::move(inventory), {}, {}, {}, {}, {}};
  const auto json = parse_json(text, where);  // what others print may be anything else
  if (!json || !json->is_object()) return recording;
  recording.jobs = json->value("jobs", Json());
  recording.drains = json->value("drains", Json());
  recording.runs = json->value("runs", Json());
  recording.alerts = json->value("alerts", Json());
  recording.events = json->value("events", Json());
  return recording;
}

Result<Recording> read_recording(const std::string& path) {
  REMUDA_ASSIGN(const std::string text, read_text(path, recorded::kLargestRecording));
  return parse_recording(text, path);
}

ReplaySource::ReplaySource(std::vector<Recording> recordings, Clock& clock, Playback playback)
    : recordings_(std::move(recordings)),
      outlooks_(recordings_.size(), pool::LatestOutlooks(0)),
      clock_(clock),
      playback_(playback),
      began_s_(clock.now_s()) {
  for (const Recording& recording : recordings_) {
    events_.push_back(events_of(recording));
    const auto& samples = recording.inventory.samples;
    const double begin_s = samples.empty() ? recording.inventory.time_s : samples.front().time_s;
    const double end_s = samples.empty() ? recording.inventory.time_s : samples.back().time_s;
    first_s_ = first_s_ == 0 ? begin_s : std::min(first_s_, begin_s);
    last_s_ = std::max(last_s_, end_s);
  }
}

double ReplaySource::position_s() const {
  const double begin_s = first_s_ + playback_.part_before * (last_s_ - first_s_);
  return std::min(last_s_, begin_s + playback_.speed * (clock_.now_s() - began_s_));
}

Json ReplaySource::host_at(size_t place, double time_s) {
  Json host = seen_at(recordings_[place], time_s);
  add_future(recordings_[place].inventory, time_s, outlooks_[place], host);
  const auto& samples = recordings_[place].inventory.samples;
  host["events"] = events_[place].until(time_s);
  host["events_since_s"] = samples.empty() ? time_s : samples.front().time_s;
  return host;
}

Result<Json> ReplaySource::snapshot() {
  const double time_s = position_s();
  Json all = host_at(0, time_s);
  double newest_s = value_in<double>(all, "time_s");
  for (size_t i = 1; i < recordings_.size(); ++i) {
    Json host = host_at(i, time_s);
    newest_s = std::max(newest_s, value_in<double>(host, "time_s"));
    all["others"].push_back(std::move(host));
  }
  all["time_s"] = newest_s;
  all["source"] = "recording";
  return all;
}

Result<History> ReplaySource::history(const HistoryQuery& query) {
  for (const Recording& recording : recordings_) {
    if (!query.host.empty() && query.host != recording.inventory.host) continue;
    const Inventory& inventory = recording.inventory;
    REMUDA_ASSIGN(const Device* const device, inventory.resolve(query.device));
    const auto played = std::ranges::upper_bound(inventory.samples, position_s(), {}, &Sample::time_s);
    History history =
        history_of({inventory.samples.begin(), played}, static_cast<size_t>(device - inventory.devices.data()), query);
    const std::vector<Reported> reported = reported_of(recording.runs, device->id);
    for (auto& [measure, series] : history.measures)
      for (size_t i = 0; measure == "waiting" && i < series.size(); ++i)
        if (const double at_s = history.start_s + static_cast<double>(i) * history.step_s; at_s <= position_s())
          series[i] = waiting_at(reported, at_s);
    return history;
  }
  return usage_error(fmt::format("there is no host '{}'", printable(query.host)));
}

Result<Json> ReplaySource::set_score(const SetQuery& query) {
  for (const Recording& recording : recordings_)
    if (query.host.empty() || query.host == recording.inventory.host)
      return snapshot::set_score(recording.inventory, query);
  return usage_error(fmt::format("there is no host '{}'", printable(query.host)));
}

}  // namespace remuda::snapshot

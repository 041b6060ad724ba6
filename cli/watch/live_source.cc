#include "cli/watch/live_source.h"

#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/queue.h"
#include "device/fields.h"
#include "monitor/dcgm.h"
#include "monitor/metrics.h"
#include "monitor/money.h"
#include "monitor/use_store.h"
#include "monitor/watcher.h"
#include "snapshot/privacy.h"

namespace remuda::cli {
namespace {

constexpr int kMostPast = 500;  // jobs that have ended, of which some are within the time that is shown

/// What jobs that have ended had, one entry for each device.
Result<Json> past_leases(pool::Access& pool) {
  REMUDA_ASSIGN(const std::vector<pool::Job> ended, pool.ended(kMostPast));
  Json past = Json::array();
  for (const pool::Job& job : ended)
    for (const std::string& device : job.started_s > 0 ? job.devices : std::vector<std::string>()) {
      Json& lease = past.emplace_back(Json{{"job", job.id},
                                           {"device", device},
                                           {"since_s", job.started_s},
                                           {"ended_s", job.ended_s},
                                           {"user", job.user},
                                           {"name", job.name}});
      if (!succeeded(job) && !job.cancelled) lease.update({{"failed", true}, {"why", job.why}});
    }
  return past;
}

/// What jobs made of the devices that they hold, as far as that was watched, beside each lease.
void add_uses(const monitor::LeaseUses& uses, const policy::Policy* policy, Json& leases) {
  for (Json& lease : leases) {
    if (!lease.contains("job")) continue;
    const auto use = uses.find({lease["job"].get<int64_t>(), lease["device"].get<std::string>()});
    if (use == uses.end()) continue;
    for (const auto& [key, seconds] : {std::pair("busy_s", use->second.busy_s),
                                       {"busy_known_s", use->second.busy_known_s},
                                       {"effective_s", use->second.effective_s},
                                       {"effective_known_s", use->second.effective_known_s}})
      lease["use"][key] = seconds;
    const monitor::Amount cost = policy ? money_of(use->second, policy->tariffs).cost : monitor::Amount();
    if (!cost.is_known) continue;
    lease["use"].update({{"cost", cost.value}, {"currency", policy->currency}, {"cost_is_complete", cost.is_complete}});
  }
}

/// What becomes of the first jobs that wait, beside each.
void add_outlooks(const std::map<int64_t, pool::Outlook>& outlooks, Json& waiting) {
  for (Json& job : waiting)
    if (const auto known = outlooks.find(job.value("id", int64_t{0})); known != outlooks.end())
      add_outlook(known->second, job);
}

/// What runs say of themselves.
Json runs_of(const pool::PoolState& state, double now_s) {
  Json runs = Json::array();
  for (const pool::Job& job : state.jobs)
    if (job.state == pool::JobState::running && job.run.is_fresh(now_s))
      runs.push_back({{"job", job.id}, {"user", job.user}, {"name", job.name}, {"run", fields::write(job.run)}});
  return runs;
}

/// What the pool says of leases, queue and runs. An error of kind `unavailable` while its agent does not answer.
Result<Json> known_through(WatchLoop& loop, const monitor::LeaseUses& uses, const LiveSource::Pool& pool) {
  run::Caretaker& caretaker = loop.caretaker();
  const auto& [state, inventory, held, policy, now_s] = pool;
  Json known;
  known["jobs"] = pool_json(state, held, inventory, now_s, policy);
  add_uses(uses, loop.moment().policy, known["jobs"]["leases"]);
  REMUDA_ASSIGN(known["past"], past_leases(caretaker.pool()));
  Json& drains = known["drains"] = Json::array();
  for (const pool::Drain& drain : state.drains) drains.push_back(fields::write(drain));
  known["runs"] = runs_of(state, now_s);
  return known;
}

/// The measures of `query` that there are; all of them have the names of monitor's.
snapshot::History history_of(const monitor::Series& series, const snapshot::HistoryQuery& query) {
  snapshot::History history{query.device, series.start_s, series.step_s, {}};
  for (const std::string& name : query.measures) {
    const auto measure = from_word<monitor::Measure>(name);
    snapshot::Series values;
    for (const monitor::Slot& slot : series.slots) {
      const float value = measure ? slot[*measure] : monitor::kUnknown;
      values.push_back(std::isfinite(value) ? std::optional<double>(value) : std::nullopt);
    }
    history.measures.emplace_back(name, std::move(values));
  }
  return history;
}

}  // namespace

LiveSource::LiveSource(MachineFlags flags, std::string folder, std::string user, ReportFlags reports)
    : user_(std::move(user)),
      folder_(folder),
      events_since_s_(wall_s()),
      watch_(std::move(flags), std::move(folder), std::move(reports),
             [this](const WatchLoop& loop) { note_events(loop); }) {}

/// What runs, alerts and the pool say by now, after each reading.
void LiveSource::note_events(const WatchLoop& loop) {
  const monitor::Moment moment = loop.moment();
  Json alerts = Json::array();
  for (const monitor::Alert& alert : loop.alerts()) alerts.push_back(fields::write(alert));
  events_.take({alerts, runs_of(moment.pool, moment.wall_s), moment.wall_s});
}

Result<LiveSource::Pool> LiveSource::read_pool(WatchLoop& loop, double now_s) {
  REMUDA_TRY(loop.pool_read());
  run::Caretaker& caretaker = loop.caretaker();
  REMUDA_ASSIGN(pool::PoolState state, caretaker.pool().read());
  for (const pool::Job& job : state.jobs)
    for (const pool::Turn& turn : job.earlier) events_.take_restart(job.id, turn.ended_s, turn.devices);
  std::vector<place::Held> held = held_without_job(caretaker, state);
  return Pool{std::move(state), caretaker.inventory(), std::move(held), policy_or_none(caretaker), now_s};
}

/// Its own, or those of the process that keeps the history, as old as that writes them.
const monitor::LeaseUses& LiveSource::uses_beside(WatchLoop& loop) {
  const monitor::Moment moment = loop.moment();
  if (!moment.uses.empty() || moment.pool.leases.empty()) return moment.uses;
  if (monotonic_s() - others_read_s_ < monitor::Watcher::kWriteEvery_s) return others_uses_;
  others_read_s_ = monotonic_s();
  others_uses_.clear();
  auto store = monitor::UseStore::open(folder_);
  const auto uses = store ? store->read(wall_s() - 2 * monitor::Watcher::kWriteEvery_s)
                          : Result<std::vector<monitor::LeaseUse>>(tl::unexpected(store.error()));
  if (!uses) return others_uses_;  // there is nothing to be said of leases then
  for (const monitor::LeaseUse& use : *uses) others_uses_[{use.job, use.device}] = use;
  return others_uses_;
}

/// Devices as they are now. While an agent does not answer, the rest is as it was, with the time when that was so.
Result<Json> LiveSource::seen_through(WatchLoop& loop, std::optional<Pool>& pool) {
  const double now_s = wall_s();  // the inventory's time is another one where it is a recorded machine's
  const Inventory& machine = loop.moment().machine;
  Json snapshot{{"version", 1}, {"time_s", now_s}, {"host", machine.host}, {"seen_s", now_s}, {"source", "live"}};
  snapshot["inventory"] = to_json(machine);
  auto read = read_pool(loop, now_s);
  auto known = read ? known_through(loop, uses_beside(loop), *read) : tl::unexpected(read.error());
  if (known) {
    known_ = std::move(*known);
    known_s_ = now_s;
    pool = std::move(*read);
  } else if (known.error().kind == ErrorKind::unavailable) {
    snapshot["agent"]["error"] = known.error().message;
    if (known_s_ > 0) snapshot["agent"]["known_s"] = known_s_;
  } else {
    return tl::unexpected(std::move(known.error()));
  }
  snapshot.update(known_);
  return snapshot;
}

/// What is to come is worked out once others can look, as that may take a while.
Result<Json> LiveSource::snapshot() {
  Json snapshot;
  std::optional<Pool> pool;
  REMUDA_TRY(watch_.look([&](WatchLoop& loop) -> Result<void> {
    REMUDA_ASSIGN(snapshot, seen_through(loop, pool));
    Json& alerts = snapshot["alerts"] = Json::array();
    for (const monitor::Alert& alert : loop.alerts()) alerts.push_back(fields::write(alert));
    snapshot["events"] = events_.until(wall_s());
    snapshot["events_since_s"] = events_since_s_;
    return {};
  }));
  if (pool)
    add_outlooks(outlooks_.of({pool->state, pool->inventory, pool->held, pool->policy, pool->now_s}, monotonic_s()),
                 snapshot["jobs"]["waiting"]);
  snapshot::hide_from(user_, snapshot);
  return snapshot;
}

Result<snapshot::History> LiveSource::history(const snapshot::HistoryQuery& query) {
  monitor::Series series;
  REMUDA_TRY(watch_.look([&](WatchLoop& loop) -> Result<void> {
    REMUDA_ASSIGN(const Device* const device, loop.moment().machine.resolve(query.device));
    monitor::History* const history = loop.history();
    if (!history) return loop.kept();
    REMUDA_ASSIGN(series, history->read(device->id, query.from_s, query.to_s, static_cast<size_t>(query.points)));
    return {};
  }));
  return series.slots.empty() ? snapshot::unknown_history(query) : history_of(series, query);
}

Result<Json> LiveSource::set_score(const snapshot::SetQuery& query) {
  Inventory machine;
  REMUDA_TRY(watch_.look([&](WatchLoop& loop) -> Result<void> {
    machine = loop.moment().machine;
    return {};
  }));
  if (!query.host.empty() && query.host != machine.host)
    return usage_error(fmt::format("there is no host '{}'", printable(query.host)));
  return snapshot::set_score(machine, query);
}

Result<std::string> LiveSource::metrics(snapshot::Metrics format) {
  std::string text;
  REMUDA_TRY(watch_.look([&](WatchLoop& loop) -> Result<void> {
    text = format == snapshot::Metrics::own ? monitor::metrics_text(loop.moment()) : monitor::dcgm_text(loop.moment());
    return {};
  }));
  return text;
}

}  // namespace remuda::cli

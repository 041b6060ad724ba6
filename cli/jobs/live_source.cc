#include "cli/jobs/live_source.h"

#include <utility>

#include "base/clock.h"
#include "cli/jobs/pool_machine.h"
#include "cli/jobs/queue.h"
#include "device/fields.h"
#include "web/privacy.h"

namespace remuda::cli {
namespace {

constexpr int kMostPast = 500;  // jobs that have ended, of which some are within the time that is shown

/// What jobs that have ended had, one entry for each device.
Result<Json> past_leases(pool::Access& pool) {
  REMUDA_ASSIGN(const std::vector<pool::Job> ended, pool.ended(kMostPast));
  Json past = Json::array();
  for (const pool::Job& job : ended)
    for (const std::string& device : job.started_s > 0 ? job.devices : std::vector<std::string>())
      past.push_back({{"job", job.id},
                      {"device", device},
                      {"since_s", job.started_s},
                      {"ended_s", job.ended_s},
                      {"user", job.user},
                      {"name", job.name}});
  return past;
}

Result<Json> seen_through(run::Caretaker& caretaker) {
  REMUDA_TRY(caretaker.read_machine());
  REMUDA_ASSIGN(const pool::PoolState state, caretaker.pool().read());
  const Inventory& inventory = caretaker.inventory();
  Json snapshot{{"version", 1}, {"time_s", inventory.time_s}, {"host", inventory.host}, {"source", "live"}};
  snapshot["inventory"] = to_json(inventory);
  snapshot["jobs"] =
      pool_json(state, held_without_job(caretaker, state), inventory, wall_s(), policy_or_none(caretaker));
  REMUDA_ASSIGN(snapshot["past"], past_leases(caretaker.pool()));
  Json& drains = snapshot["drains"] = Json::array();
  for (const pool::Drain& drain : state.drains) drains.push_back(fields::write(drain));
  snapshot["runs"] = Json::array();
  snapshot["alerts"] = Json::array();
  return snapshot;
}

}  // namespace

LiveSource::LiveSource(MachineFlags flags, std::string user) : flags_(std::move(flags)), user_(std::move(user)) {}

Result<Json> LiveSource::snapshot() {
  if (!caretaker_) {
    REMUDA_ASSIGN(run::Caretaker opened, open_pool(flags_));
    caretaker_.emplace(std::move(opened));
  }
  auto snapshot = seen_through(*caretaker_);
  if (snapshot)
    web::hide_from(user_, *snapshot);
  else
    caretaker_.reset();
  return snapshot;
}

Result<web::History> LiveSource::history(const web::HistoryQuery& query) { return web::unknown_history(query); }

}  // namespace remuda::cli

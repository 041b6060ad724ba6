#include "cli/jobs/pool_notes.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "device/fields.h"
#include "pool/admission.h"
#include "pool/pool.h"
#include "wire/client.h"

namespace remuda::cli {
namespace {

/// None is made for this.
Result<pool::PoolState> state_of(const MachineFlags& machine) {
  REMUDA_ASSIGN(const PoolPlace place, place_of_pool(machine));
  if (place.agent) {
    REMUDA_ASSIGN(const auto client, wire::Client::connect(*place.agent, ""));
    return client->read_around(0);
  }
  std::error_code error;
  if (!std::filesystem::exists(place.folder + "/pool.db", error) && !error) return pool::PoolState{};
  REMUDA_ASSIGN(auto opened, pool::Pool::open(place.folder));
  return opened.read();
}

std::string holder_of(const pool::PoolState& state, const pool::Lease& lease) {
  const pool::Job* job = state.find(lease.job);
  return fmt::format("{} (job {})", job ? printable(job->user) : "somebody",
                     job ? name_of(*job) : std::to_string(lease.job));
}

}  // namespace

SeenPool see_pool(const MachineFlags& machine) {
  auto state = state_of(machine);
  return state ? SeenPool{std::move(*state), ""} : SeenPool{{}, std::move(state.error().message)};
}

std::string pool_notes(const SeenPool& pool, const Inventory& inventory, const std::string& device) {
  if (!pool.obstacle.empty()) return fmt::format("Who holds a lease is not known: {}\n", pool.obstacle);
  const auto is_asked = [&](const std::string& id) { return device.empty() || id == device; };
  std::string text;
  for (const pool::Drain& drain : pool.state.drains)
    if (is_asked(drain.device))
      text += fmt::format("{} is drained: {} ({}, {} ago)\n", label_of(inventory, drain.device), drain.reason, drain.by,
                          duration_text(wall_s() - drain.since_s));
  for (const pool::Allocation& one : pool.state.allocations)
    if (is_asked(one.device)) text += fmt::format("{} {}\n", label_of(inventory, one.device), printable(text_of(one)));
  for (const pool::Lease& lease : pool.state.leases)
    if (is_asked(lease.device))
      text +=
          fmt::format("{}{} is leased to {}\n", lease.share < 1 ? fmt::format("{:.0f} % of ", 100 * lease.share) : "",
                      label_of(inventory, lease.device), holder_of(pool.state, lease));
  return text;
}

Leases leases_of(const SeenPool& pool) {
  Leases leases{.is_known = pool.obstacle.empty(), .holders = {}};
  for (const pool::Lease& lease : pool.state.leases) {
    std::string& holders = leases.holders[lease.device];
    holders += (holders.empty() ? "" : ", ") + holder_of(pool.state, lease);
  }
  return leases;
}

void add_pool(const SeenPool& pool, const std::string& device, Json& json) {
  if (!pool.obstacle.empty()) json["leases_unknown"] = pool.obstacle;
  const auto is_asked = [&](const std::string& id) { return device.empty() || id == device; };
  for (const pool::Lease& lease : pool.state.leases) {
    if (!is_asked(lease.device)) continue;
    Json one = fields::write(lease);
    if (const pool::Job* job = pool.state.find(lease.job)) one["user"] = job->user;
    json["leases"].push_back(std::move(one));
  }
  for (const pool::Drain& drain : pool.state.drains)
    if (is_asked(drain.device)) json["drains"].push_back(fields::write(drain));
}

}  // namespace remuda::cli

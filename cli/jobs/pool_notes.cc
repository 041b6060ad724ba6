#include "cli/jobs/pool_notes.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/jobs/job_name.h"
#include "cli/jobs/pool_machine.h"
#include "pool/admission.h"
#include "pool/pool.h"
#include "wire/client.h"

namespace remuda::cli {
namespace {

/// Of a pool that is there; none is made for this, and what is not to be read is empty.
pool::PoolState state_of(const MachineFlags& machine) {
  const auto place = place_of_pool(machine);
  if (!place) return {};
  if (place->agent) {
    const auto client = wire::Client::connect(*place->agent, "");
    return client ? (*client)->read_around(0).value_or(pool::PoolState{}) : pool::PoolState{};
  }
  std::error_code error;
  if (!std::filesystem::exists(place->folder + "/pool.db", error)) return {};
  auto opened = pool::Pool::open(place->folder);
  return opened ? opened->read().value_or(pool::PoolState{}) : pool::PoolState{};
}

}  // namespace

std::string pool_notes(const MachineFlags& machine, const Inventory& inventory) {
  const pool::PoolState state = state_of(machine);
  std::string text;
  for (const pool::Drain& drain : state.drains)
    text += fmt::format("{} is drained: {} ({}, {} ago)\n", label_of(inventory, drain.device), drain.reason, drain.by,
                        duration_text(wall_s() - drain.since_s));
  for (const pool::Allocation& one : state.allocations)
    text += fmt::format("{} {}\n", label_of(inventory, one.device), printable(text_of(one)));
  for (const pool::Lease& lease : state.leases) {
    const pool::Job* job = state.find(lease.job);
    text += fmt::format("{}{} is leased to {} (job {})\n",
                        lease.share < 1 ? fmt::format("{:.0f} % of ", 100 * lease.share) : "",
                        label_of(inventory, lease.device), job ? printable(job->user) : "somebody",
                        job ? name_of(*job) : std::to_string(lease.job));
  }
  return text;
}

}  // namespace remuda::cli

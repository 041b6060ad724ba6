#include "cli/jobs/pool_machine.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "cli/jobs/watched_pool.h"
#include "pool/admission.h"
#include "pool/pool.h"
#include "pool/shared_pool.h"
#include "run/policy_file.h"
#include "wire/client.h"
#include "wire/place.h"

namespace remuda::cli {

pool::ReadMachine reader_of(const MachineFlags& flags) {
  return [reader = std::make_shared<MachineReader>(flags)] { return reader->read(); };
}

namespace {

/// Where an agent has the pool, users cannot write there.
std::string logs_beside_agent(const std::string& file) {
  const auto own = pool::own_pool_folder(file);
  return own ? *own + "/agent" : "";
}

/// An agent may have been started with another REMUDA_POLICY than this user has.
std::string policy_of(const wire::Client& client) {
  return client.policy().empty() ? run::policy_path(client.folder()) : client.policy();
}

Result<run::Caretaker> open_at(const std::string& socket, const std::string& file, const pool::ReadMachine& read,
                               std::optional<double> within_s) {
  REMUDA_ASSIGN(auto client, wire::Client::connect(socket, logs_beside_agent(file), within_s));
  const auto read_policy = [path = policy_of(*client)] { return run::policy_at(path); };
  REMUDA_ASSIGN(auto machine, pool::MachineView::open(client->folder(), read, read_policy, file.empty(), nullptr,
                                                      client->others_claims()));
  return run::Caretaker(std::make_unique<pool::MachineView>(std::move(machine)), std::move(client));
}

Result<run::Caretaker> open(const std::string& file, const pool::ReadMachine& read, std::optional<double> within_s) {
  if (const auto socket = wire::agent_socket(file.empty())) return open_at(*socket, file, read, within_s);
  REMUDA_ASSIGN(const std::string folder, pool::pool_folder(file));
  return run::Caretaker::open(folder, read, file.empty());
}

Result<run::Caretaker> tidied(Result<run::Caretaker> opened) {
  REMUDA_ASSIGN(run::Caretaker caretaker, std::move(opened));
  if (const auto tidied = caretaker.tidy(); !tidied) {
    if (!caretaker.pool().may_try_again()) return tl::unexpected(tidied.error());
    fmt::print(stderr, "remuda: {}; jobs that ended without a word may still be listed\n", tidied.error().message);
  }
  return caretaker;
}

}  // namespace

Result<PoolPlace> place_of_pool(const MachineFlags& flags) {
  if (const auto socket = wire::agent_socket(flags.file.empty())) {
    REMUDA_ASSIGN(const auto client, wire::Client::connect(*socket, ""));
    return PoolPlace{client->folder(), logs_beside_agent(flags.file), socket, policy_of(*client)};
  }
  REMUDA_ASSIGN(const std::string folder, pool::pool_folder(flags.file));
  return PoolPlace{folder, folder, std::nullopt, run::policy_path(folder)};
}

run::OpenPool opener_of(const MachineFlags& flags) {
  return [file = flags.file, read = reader_of(flags)] { return open(file, read, std::nullopt); };
}

Result<run::Caretaker> open_pool(const MachineFlags& flags) { return tidied(opener_of(flags)()); }

Result<run::Caretaker> open_watched_pool(const MachineFlags& flags, const pool::ReadMachine& read) {
  constexpr double kWithin_s = 1;
  return tidied(open(flags.file, read, kWithin_s));
}

void note_pool_obstacle(const MachineFlags& flags) {
  if (!flags.file.empty() || wire::agent_socket(true)) return;
  if (const auto obstacle = pool::shared_pool_obstacle())
    fmt::print(stderr, "remuda: {}; to mend it: {}\n", obstacle->sentence, obstacle->remedy);
}

std::string label_of(const Inventory& inventory, const std::string& id) {
  const Device* device = inventory.find(id);
  return device ? device->label() : id;
}

std::string devices_text(const pool::PoolState& state, int64_t job, const Inventory& inventory) {
  std::string text;
  for (const pool::Lease& lease : state.leases)
    if (lease.job == job) text += (text.empty() ? "" : ", ") + label_of(inventory, lease.device);
  return text;
}

pool::Policy policy_or_none(const run::Caretaker& caretaker) {
  return caretaker.policy() ? *caretaker.policy() : pool::Policy{};
}

std::vector<place::Held> held_without_job(const run::Caretaker& caretaker, const pool::PoolState& state) {
  std::vector<place::Held> held = caretaker.held_without_lease(state);
  std::erase_if(held, [&](const place::Held& one) {  // whose processes these are, its manager knows better
    return std::ranges::find(state.allocations, one.device, &pool::Allocation::device) != state.allocations.end();
  });
  std::ranges::move(held_by_allocations(state.allocations), std::back_inserter(held));
  std::ranges::move(held_by_drains(state), std::back_inserter(held));
  return held;
}

std::vector<place::Held> held_now(const run::Caretaker& caretaker, const pool::PoolState& state) {
  std::vector<place::Held> held = held_by_leases(state);
  std::ranges::move(held_without_job(caretaker, state), std::back_inserter(held));
  return held;
}

Result<std::vector<int64_t>> own_open_jobs(pool::Access& pool) {
  REMUDA_ASSIGN(const pool::PoolState state, pool.read_own());
  std::vector<int64_t> open;
  for (const pool::Job& job : state.jobs)
    if (job.state != pool::JobState::ended) open.push_back(job.id);
  return open;
}

}  // namespace remuda::cli

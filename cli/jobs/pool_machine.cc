#include "cli/jobs/pool_machine.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "pool/admission.h"
#include "pool/shared_pool.h"

namespace remuda::cli {

run::ReadMachine reader_of(const MachineFlags& flags) {
  return [reader = std::make_shared<MachineReader>(flags)] { return reader->read(); };
}

Result<run::Caretaker> open_pool(const MachineFlags& flags) {
  REMUDA_ASSIGN(const std::string folder, pool::pool_folder(flags.file));
  REMUDA_ASSIGN(run::Caretaker caretaker, run::Caretaker::open(folder, reader_of(flags), flags.file.empty()));
  if (const auto tidied = caretaker.tidy(); !tidied) {
    if (!caretaker.pool().may_try_again()) return tl::unexpected(tidied.error());
    fmt::print(stderr, "remuda: {}; jobs that ended without a word may still be listed\n", tidied.error().message);
  }
  return caretaker;
}

void note_pool_obstacle(const MachineFlags& flags) {
  if (!flags.file.empty()) return;
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
  std::ranges::move(held_by_drains(state), std::back_inserter(held));
  return held;
}

std::vector<place::Held> held_now(const run::Caretaker& caretaker, const pool::PoolState& state) {
  std::vector<place::Held> held = held_by_leases(state);
  std::ranges::move(held_without_job(caretaker, state), std::back_inserter(held));
  return held;
}

}  // namespace remuda::cli

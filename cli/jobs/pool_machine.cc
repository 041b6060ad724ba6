#include "cli/jobs/pool_machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <memory>

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

std::vector<place::Held> held_now(const run::Caretaker& caretaker, const pool::PoolState& state) {
  std::vector<place::Held> held = held_by_leases(state);
  std::ranges::move(caretaker.held_without_lease(state), std::back_inserter(held));
  return held;
}

std::optional<double> parse_duration(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit(end, text.data() + text.size());
  if (unit.empty() || unit == "s") return value;
  if (unit == "m" || unit == "min") return value * 60;
  if (unit == "h") return value * 3600;
  if (unit == "d") return value * 86400;
  return std::nullopt;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(0.0, seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

}  // namespace remuda::cli

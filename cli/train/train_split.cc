#include "cli/train/train_split.h"

#include <algorithm>

#include "balance/update_times.h"
#include "cli/train/train_devices.h"

namespace remuda::cli {
namespace {

/// What the run counts for a device: for a CPU, its cores' part of the host's memory. 0: not known.
double memory_of(const Inventory& inventory, const Device& device) {
  const auto is_cpu = [](const Device& one) { return one.kind == DeviceKind::cpu; };
  const auto bytes_of = [](const Device& one) { return static_cast<double>(one.memory_bytes.value_or(0)); };
  if (!is_cpu(device)) return bytes_of(device);
  double bytes = 0, cores = 0;
  for (const Device& cpu : inventory.devices) {
    if (!is_cpu(cpu)) continue;
    bytes += bytes_of(cpu);
    cores += static_cast<double>(cpu.cores.value_or({}).size());
  }
  return cores > 0 ? bytes * static_cast<double>(device.cores.value_or({}).size()) / cores : bytes_of(device);
}

/// Who owns which part of the state when a run begins. How large that is, the plan does not know: it is taken to fit.
std::vector<double> state_by_memory(const job::TrainJob& job, const Inventory& inventory) {
  std::vector<balance::StateOwner> owners;
  for (int rank = 0; rank < std::ssize(job.devices); ++rank)
    owners.push_back({.memory_bytes = memory_of(inventory, chosen_device(inventory, job.devices[rank].use)) /
                                      job::ranks_on_device_of(job, rank)});
  return balance::state_parts(owners, {});
}

/// As Trainer::may_move_state() has it.
bool may_move_state(const job::TrainJob& job) {
  return job.train.compression == job::Compression::none && job.engine.fewer_waits == job::Switch::off;
}

}  // namespace

std::optional<balance::Split> split_by_law(const job::TrainJob& job, const Inventory& inventory,
                                           const std::vector<std::optional<StepCost>>& costs) {
  const bool decides = job.balance.policy == balance::BalancePolicy::automatic && job.balance.state_shares.empty();
  const bool knows_all = costs.size() == job.devices.size() &&
                         std::ranges::all_of(costs, [](const auto& cost) { return cost.has_value(); });
  const bool all_compute = job::ranks_with(job, balance::Role::compute).size() == job.devices.size();
  if (!decides || !knows_all || !all_compute || job.memory.parameters == job::Held::sharded) return std::nullopt;
  std::vector<balance::SplitDevice> devices;
  for (const auto& cost : costs)
    devices.push_back({.compute = cost->part, .samples = {0, job.train.global_batch}, .update_s = cost->update_s});
  balance::SplitTask task{.batch = job.train.global_batch, .unit = std::max(1, job.train.micro_batch)};
  const auto best = balance::best_split(devices, task);
  task.state_given = state_by_memory(job, inventory);
  const auto as_it_is = balance::best_split(devices, task);
  const bool moves =
      may_move_state(job) && best && as_it_is && best->step_s < (1 - balance::kWorthMoving) * as_it_is->step_s;
  return moves ? best : as_it_is;
}

}  // namespace remuda::cli

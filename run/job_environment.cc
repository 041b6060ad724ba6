#include "run/job_environment.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/env.h"
#include "base/text.h"
#include "confine/cgroup.h"
#include "place/place.h"
#include "workers/ranks.h"

namespace remuda::run {
namespace {

/// The placement that `place` gives for exactly these devices; nothing where it gives none.
std::optional<place::Placement> placement_of(const Inventory& inventory, const std::vector<std::string>& devices) {
  const place::Request request{
      .count = static_cast<int>(devices.size()), .any_model = true, .devices = devices, .cpu = true};
  const auto answer = place::place(place::Layout(inventory), request, {});
  const auto* placement = answer ? std::get_if<place::Placement>(&*answer) : nullptr;
  return placement ? std::optional(*placement) : std::nullopt;
}

/// "0-3;4-7": one part for each device, empty for those that are no CPU devices.
std::string cpus_of(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::vector<std::string> parts;
  for (const std::string& id : devices) {
    const Device* device = inventory.find(id);
    const bool is_cpu = device && device->kind == DeviceKind::cpu;
    parts.push_back(is_cpu ? index_ranges(device->cores.value_or({})) : "");
  }
  return fmt::format("{}", fmt::join(parts, ";"));
}

std::vector<double> work_shares(const Inventory& inventory, const std::vector<std::string>& devices) {
  const auto placement = placement_of(inventory, devices);
  if (placement && placement->shares.size() == devices.size()) return placement->shares;
  return std::vector<double>(devices.size(), 1.0 / static_cast<double>(std::max<size_t>(1, devices.size())));
}

}  // namespace

std::vector<std::string> devices_of(const pool::PoolState& state, int64_t job, const Inventory& inventory) {
  std::vector<std::string> devices;
  const auto leased = [&](const Device& device) {
    return std::ranges::any_of(state.leases,
                               [&](const pool::Lease& lease) { return lease.job == job && lease.device == device.id; });
  };
  for (const Device& device : inventory.devices)
    if (leased(device)) devices.push_back(device.id);
  return devices;
}

std::string missing_device(const pool::PoolState& state, int64_t job, const Inventory& inventory) {
  for (const pool::Lease& lease : state.leases)
    if (lease.job == job && !inventory.find(lease.device))
      return fmt::format("it was granted {}, which is not there any more: see remuda list", printable(lease.device));
  return "";
}

std::vector<std::string> labels_of(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::vector<std::string> labels;
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id)) labels.push_back(device->label());
  return labels;
}

std::string labels_text(const Inventory& inventory, const std::vector<std::string>& devices) {
  return fmt::format("{}", fmt::join(labels_of(inventory, devices), ", "));
}

std::string joined_devices_text(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::string text = labels_text(inventory, devices);
  const auto placement = devices.size() > 1 ? placement_of(inventory, devices) : std::nullopt;
  if (!placement || !placement->explanation.ring) return text;
  const auto& ring = *placement->explanation.ring;
  return text + fmt::format(" ({}, {:.4g} GB/s)", ring.label, ring.gbps);
}

confine::Visibility job_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                                    const std::vector<std::string>& devices) {
  confine::Visibility result = confine::visibility(inventory, devices);
  result.unset.emplace_back(env::daemon.name);
  result.set.emplace_back(env::job.name, std::to_string(job));
  result.set.emplace_back(env::job_pool.name, pool);
  result.set.emplace_back(env::job_pool_id.name, confine::pool_identity(pool));
  result.set.emplace_back(env::job_devices.name, fmt::format("{}", fmt::join(devices, ",")));
  result.set.emplace_back(env::job_cpus.name, cpus_of(inventory, devices));
  result.set.emplace_back(env::job_shares.name, fmt::format("{:.6g}", fmt::join(work_shares(inventory, devices), ",")));
  return result;
}

process::Environment array_environment(const pool::Job& job) {
  if (job.array == 0) return {};
  return {{env::job_array.name, std::to_string(job.array)},
          {env::job_array_index.name, std::to_string(job.array_index)}};
}

confine::Visibility rank_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                                     const std::vector<std::string>& devices, int rank, const Ranks& ranks) {
  confine::Visibility result = job_environment(inventory, pool, job, devices);
  const confine::Visibility own = confine::visibility(inventory, {devices.at(rank)});
  std::erase_if(result.set,
                [&](const auto& one) { return std::ranges::find(own.unset, one.first) != own.unset.end(); });
  for (const auto& [name, value] : own.set) {
    std::erase_if(result.set, [&](const auto& one) { return one.first == name; });
    result.set.emplace_back(name, value);
  }
  result.unset = own.unset;
  result.unset.emplace_back(env::daemon.name);
  const process::Environment torchrun = workers::torchrun_environment({.rank = rank,
                                                                       .world_size = static_cast<int>(devices.size()),
                                                                       .master_port = ranks.port,
                                                                       .run_id = fmt::format("remuda-{}", job),
                                                                       .restarts = ranks.restarts,
                                                                       .max_restarts = ranks.max_restarts});
  result.set.insert(result.set.end(), torchrun.begin(), torchrun.end());
  if (!ranks.secret.empty()) result.set.emplace_back(env::secret.name, ranks.secret);
  const Device* device = inventory.find(devices[size_t(rank)]);
  if (const std::string type = device ? confine::torch_device(*device) : ""; !type.empty())
    result.set.emplace_back(env::torch_device.name, type);
  if (ranks.threads > 0) result.set.emplace_back(env::omp_num_threads.name, std::to_string(ranks.threads));
  return result;
}

}  // namespace remuda::run

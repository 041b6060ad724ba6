#include "run/job_environment.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/env.h"
#include "place/place.h"
#include "workers/ranks.h"

namespace remuda::run {
namespace {

std::vector<double> work_shares(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::vector<double> even(devices.size(), 1.0 / static_cast<double>(std::max<size_t>(1, devices.size())));
  const place::Request request{
      .count = static_cast<int>(devices.size()), .any_model = true, .devices = devices, .cpu = true};
  const auto answer = place::place(place::Layout(inventory), request, {});
  if (!answer) return even;
  const auto* placement = std::get_if<place::Placement>(&*answer);
  return placement && placement->shares.size() == devices.size() ? placement->shares : even;
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

std::vector<std::string> labels_of(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::vector<std::string> labels;
  for (const std::string& id : devices)
    if (const Device* device = inventory.find(id)) labels.push_back(device->label());
  return labels;
}

std::string labels_text(const Inventory& inventory, const std::vector<std::string>& devices) {
  return fmt::format("{}", fmt::join(labels_of(inventory, devices), ", "));
}

confine::Visibility job_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                                    const std::vector<std::string>& devices) {
  confine::Visibility result = confine::visibility(inventory, devices);
  result.unset.emplace_back(env::daemon.name);
  result.set.emplace_back(env::job.name, std::to_string(job));
  result.set.emplace_back(env::job_pool.name, pool);
  result.set.emplace_back(env::job_devices.name, fmt::format("{}", fmt::join(devices, ",")));
  result.set.emplace_back(env::job_shares.name, fmt::format("{:.6g}", fmt::join(work_shares(inventory, devices), ",")));
  return result;
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
  if (ranks.threads > 0) result.set.emplace_back(env::omp_num_threads.name, std::to_string(ranks.threads));
  return result;
}

}  // namespace remuda::run

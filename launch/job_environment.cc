#include "launch/job_environment.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/env.h"
#include "launch/orphans.h"
#include "place/place.h"

namespace remuda {
namespace {

std::vector<double> work_shares(const Inventory& inventory, const std::vector<std::string>& devices) {
  std::vector<double> even(devices.size(), 1.0 / static_cast<double>(std::max<size_t>(1, devices.size())));
  const Request request{.count = static_cast<int>(devices.size()), .any_model = true, .devices = devices, .cpu = true};
  const auto answer = place(Layout(inventory), request, {});
  if (!answer) return even;
  const auto* placement = std::get_if<Placement>(&*answer);
  return placement && placement->shares.size() == devices.size() ? placement->shares : even;
}

}  // namespace

std::vector<std::string> devices_of(const PoolState& state, int64_t job, const Inventory& inventory) {
  std::vector<std::string> devices;
  const auto leased = [&](const Device& device) {
    return std::ranges::any_of(state.leases,
                               [&](const Lease& lease) { return lease.job == job && lease.device == device.id; });
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

Visibility job_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                           const std::vector<std::string>& devices) {
  Visibility result = visibility(inventory, devices);
  result.unset.emplace_back(kDaemonVariable);
  result.set.emplace_back(kJobVariable, std::to_string(job));
  result.set.emplace_back(kPoolVariable, pool);
  result.set.emplace_back("REMUDA_DEVICES", fmt::format("{}", fmt::join(devices, ",")));
  result.set.emplace_back("REMUDA_SHARES", fmt::format("{:.6g}", fmt::join(work_shares(inventory, devices), ",")));
  return result;
}

Visibility rank_environment(const Inventory& inventory, const std::string& pool, int64_t job,
                            const std::vector<std::string>& devices, int rank, const Ranks& ranks) {
  Visibility result = job_environment(inventory, pool, job, devices);
  const Visibility own = visibility(inventory, {devices.at(rank)});
  std::erase_if(result.set,
                [&](const auto& one) { return std::ranges::find(own.unset, one.first) != own.unset.end(); });
  for (const auto& [name, value] : own.set) {
    std::erase_if(result.set, [&](const auto& one) { return one.first == name; });
    result.set.emplace_back(name, value);
  }
  result.unset = own.unset;
  result.unset.emplace_back(kDaemonVariable);
  const std::string world = std::to_string(devices.size()), number = std::to_string(rank);
  for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) result.set.emplace_back(name, number);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) result.set.emplace_back(name, world);
  result.set.insert(result.set.end(), {{"GROUP_RANK", "0"},
                                       {"GROUP_WORLD_SIZE", "1"},
                                       {"ROLE_NAME", "default"},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(ranks.port)},
                                       {"TORCHELASTIC_RUN_ID", fmt::format("remuda-{}", job)},
                                       {"TORCHELASTIC_RESTART_COUNT", std::to_string(ranks.restarts)},
                                       {"TORCHELASTIC_MAX_RESTARTS", std::to_string(ranks.max_restarts)},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  if (ranks.threads > 0) result.set.emplace_back(env::omp_num_threads.name, std::to_string(ranks.threads));
  return result;
}

}  // namespace remuda

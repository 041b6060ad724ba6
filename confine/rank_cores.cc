#include "confine/rank_cores.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "confine/nearest.h"

namespace remuda::confine {
namespace {

using Cores = std::vector<int>;

constexpr size_t kForEachGpu = 2;

Cores without(const Cores& cores, const std::set<int>& taken) {
  Cores rest;
  std::ranges::copy_if(cores, std::back_inserter(rest), [&](int core) { return !taken.contains(core); });
  return rest;
}

Cores both(const Cores& a, const Cores& b) {
  Cores common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return common;
}

/// A rank's device, and the CPUs that the rank is to have.
struct Plan {
  bool is_cpu = false;
  Cores near, cores;
};

std::set<int> taken_by_cpus(const std::vector<Plan>& plans) {
  std::set<int> taken;
  for (const Plan& plan : plans)
    if (plan.is_cpu) taken.insert(plan.cores.begin(), plan.cores.end());
  return taken;
}

/// Makes each CPU device leave some of its cores to the GPUs near it that would have none.
void make_room(std::vector<Plan>& plans) {
  const std::set<int> taken = taken_by_cpus(plans);
  for (Plan& cpu : plans) {
    if (!cpu.is_cpu) continue;
    Cores left;
    const size_t spare = cpu.near.size() / 2;
    for (const Plan& gpu : plans) {
      if (gpu.is_cpu || !without(gpu.near, taken).empty()) continue;
      Cores common = both(without(cpu.near, {left.begin(), left.end()}), gpu.near);
      const size_t gives = std::min({kForEachGpu, spare - left.size(), common.size()});
      left.insert(left.end(), common.end() - static_cast<ptrdiff_t>(gives), common.end());
    }
    cpu.cores = without(cpu.near, {left.begin(), left.end()});
  }
}

std::vector<Plan> plan(const Inventory& inventory, const std::vector<std::string>& devices, const Cores& allowed) {
  std::vector<Plan> plans;
  for (const std::string& id : devices) {
    const Device* device = inventory.find(id);
    Cores near = nearest_cores(inventory, {id}, allowed).cores;
    if (near.empty()) near = allowed;
    plans.push_back({device && device->kind == DeviceKind::cpu, near, near});
  }
  make_room(plans);
  const std::set<int> taken = taken_by_cpus(plans);
  for (Plan& gpu : plans)
    if (Cores free = without(gpu.near, taken); !gpu.is_cpu && !free.empty()) gpu.cores = std::move(free);
  return plans;
}

}  // namespace

std::vector<RankCores> rank_cores(const Inventory& inventory, const std::vector<std::string>& devices,
                                  const std::vector<int>& allowed) {
  const std::vector<Plan> plans = plan(inventory, devices, allowed);
  std::vector<RankCores> ranks;
  for (const Plan& own : plans) {
    const auto sharing = std::ranges::count_if(plans, [&](const Plan& other) { return other.cores == own.cores; });
    ranks.push_back({own.cores, std::max<size_t>(1, own.cores.size() / static_cast<size_t>(sharing))});
  }
  return ranks;
}

}  // namespace remuda::confine

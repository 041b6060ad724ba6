#include "measure/plan.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <map>

#include "device/fields.h"

namespace remuda::measure {
namespace {

constexpr size_t kPage = 4096;
constexpr double kShortestFigure_s = 0.001;
constexpr double kFiguresPerDevice = 8, kFiguresPerPair = 3;
constexpr int64_t kLeastPlanBytes = 1 << 12, kMostPlanBytes = int64_t{1} << 32;
constexpr size_t kMostDevices = 4096;

bool are_measured_as_pair(const PlanDevice& a, const PlanDevice& b) {
  return (a.kind == DeviceKind::cpu && b.kind == DeviceKind::cpu) || a.rank == b.rank;
}

void share_out(Plan& plan, double seconds) {
  size_t pairs = 0;
  for (const Phase& phase : phases(plan)) pairs += phase.subject == Subject::latency ? 1 : 0;
  const double figures =
      kFiguresPerDevice * static_cast<double>(plan.devices.size()) + kFiguresPerPair * static_cast<double>(pairs);
  plan.figure_s = std::max(kShortestFigure_s, seconds / std::max(figures, 1.0));
}

Result<void> check(const Plan& plan) {
  if (plan.devices.empty() || plan.devices.size() > kMostDevices)
    return usage_error(fmt::format("a plan has 1 to {} devices, not {}", kMostDevices, plan.devices.size()));
  if (plan.bytes < kLeastPlanBytes || plan.bytes > kMostPlanBytes ||
      !std::has_single_bit(static_cast<uint64_t>(plan.bytes)))
    return usage_error(fmt::format("{} is no size for the buffers of a plan", plan.bytes));
  if (!(plan.figure_s > 0)) return usage_error("a plan needs time for its figures");
  const int ranks = static_cast<int>(plan.devices.size());
  for (const auto& device : plan.devices)
    if (device.rank < 0 || device.rank >= ranks)
      return usage_error(fmt::format("the plan gives {} to rank {}, which is not there", device.id, device.rank));
  return {};
}

}  // namespace

Plan make_plan(const std::vector<const Device*>& devices, double seconds, size_t bytes) {
  Plan plan{.bytes = static_cast<int64_t>(bytes)};
  std::map<std::string, int> rank_of_vendor;
  int ranks = 0;
  for (const Device* device : devices) {
    PlanDevice planned{.id = device->id, .name = device->label(), .kind = device->kind};
    planned.cores = device->cores.value_or({});
    if (device->kind != DeviceKind::cpu) {
      planned.vendor = device->vendor;
      planned.uuid = device->uuid.value_or("");
    }
    const bool shares = device->kind == DeviceKind::gpu;
    planned.rank = shares ? rank_of_vendor.try_emplace(device->vendor, ranks).first->second : ranks;
    ranks = std::max(ranks, planned.rank + 1);
    plan.devices.push_back(std::move(planned));
  }
  share_out(plan, seconds);
  return plan;
}

Json to_json(const Plan& plan) { return fields::write(plan); }

Result<Plan> parse_plan(std::string_view text) {
  REMUDA_ASSIGN(const Json json, parse_json(text, "the plan"));
  Plan plan;
  REMUDA_TRY(fields::read(json, "the plan", plan));
  REMUDA_TRY(check(plan));
  return plan;
}

int rank_count(const Plan& plan) {
  int ranks = 0;
  for (const auto& device : plan.devices) ranks = std::max(ranks, device.rank + 1);
  return ranks;
}

double longest_phase_s(const Plan& plan) { return kFiguresPerDevice * plan.figure_s; }

std::vector<Phase> phases(const Plan& plan) {
  std::vector<Phase> all;
  for (size_t i = 0; i < plan.devices.size(); ++i) all.push_back({Subject::device, i, i});
  for (size_t a = 0; a < plan.devices.size(); ++a)
    for (size_t b = a + 1; b < plan.devices.size(); ++b) {
      if (!are_measured_as_pair(plan.devices[a], plan.devices[b])) continue;
      all.push_back({Subject::pull, a, b});
      all.push_back({Subject::pull, b, a});
      all.push_back({Subject::latency, a, b});
    }
  return all;
}

bool takes_part(const Plan& plan, const Phase& phase, int rank) {
  if (plan.devices[phase.device].rank == rank) return true;
  return phase.subject == Subject::latency && plan.devices[phase.peer].rank == rank;
}

std::string name_of(const Plan& plan, const Phase& phase) {
  const std::string& device = plan.devices[phase.device].name;
  const std::string& peer = plan.devices[phase.peer].name;
  switch (phase.subject) {
    case Subject::device:
      return device;
    case Subject::pull:
      return fmt::format("{} from {}", device, peer);
    case Subject::latency:
      return fmt::format("{} and {}", device, peer);
  }
  return device;
}

size_t shared_bytes(const Plan& plan) { return buffer_offset(plan, plan.devices.size()); }

size_t host_offset() { return kPage; }

size_t buffer_offset(const Plan& plan, size_t device) {
  return host_offset() + (device + 1) * static_cast<size_t>(plan.bytes);
}

std::optional<int> host_rank(const Plan& plan) {
  const auto first = std::ranges::find(plan.devices, DeviceKind::cpu, &PlanDevice::kind);
  return first == plan.devices.end() ? std::nullopt : std::optional(first->rank);
}

}  // namespace remuda::measure

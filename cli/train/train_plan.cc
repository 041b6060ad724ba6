#include "cli/train/train_plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>

#include "balance/shares.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/train/report_text.h"
#include "cli/train/train_devices.h"
#include "cli/train/train_progress.h"
#include "cli/train/train_split.h"
#include "place/capability.h"
#include "place/rates.h"

namespace remuda::cli {
namespace {

constexpr size_t kPlanWidth = 80;

using Speeds = std::vector<std::optional<double>>;

/// In proportion to the weights of the devices that take samples.
std::vector<double> parts_of(const job::TrainJob& job, std::vector<double> weights) {
  for (int rank = 0; rank < std::ssize(weights); ++rank)
    if (!job::computes(job, rank)) weights[rank] = 0;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

bool shares_devices(const job::TrainJob& job) {
  for (int rank = 0; rank < std::ssize(job.devices); ++rank)
    if (job::ranks_on_device_of(job, rank) > 1) return true;
  return false;
}

/// Of the devices that take samples.
bool all_known(const job::TrainJob& job, const Speeds& speeds) {
  return std::ranges::all_of(job::ranks_with(job, balance::Role::compute),
                             [&](int rank) { return speeds[rank].has_value(); });
}

void plan_shares(const job::TrainJob& job, const Inventory& inventory, const Speeds& speeds, TrainPlan& plan) {
  using balance::BalancePolicy;
  const size_t count = job.devices.size();
  if (job.balance.policy == BalancePolicy::even) {
    plan.shares = parts_of(job, std::vector<double>(count, 1));
    plan.shares_reason = "balance.policy is even";
  } else if (job.balance.policy == BalancePolicy::fixed) {
    plan.shares = parts_of(job, job.balance.shares);
    plan.shares_reason = "balance.shares gives them";
  } else if (all_known(job, speeds)) {
    std::vector<double> weights;
    for (const auto& speed : speeds) weights.push_back(speed.value_or(0));
    plan.shares = parts_of(job, std::move(weights));
    plan.shares_reason = "the speeds that earlier runs of this job measured";
  } else {
    std::vector<const Device*> devices;
    for (const auto& spec : job.devices) devices.push_back(&chosen_device(inventory, spec.use));
    place::Rates rates = place::rates_of(inventory, devices);
    for (size_t i = 0; i < count; ++i)
      rates.values[i] /= job.devices[i].slowdown * job::ranks_on_device_of(job, static_cast<int>(i));
    plan.shares = parts_of(job, place::shares_of(rates));
    plan.shares_reason = rates.basis + "; the run measures each device first";
  }
}

bool has_roles(const job::TrainJob& job) {
  return job::ranks_with(job, balance::Role::compute).size() != job.devices.size();
}

/// What is split are micro-batches, which no device has a part of.
void round_to_micro_batches(const job::TrainJob& job, TrainPlan& plan) {
  const int unit = job.train.micro_batch;
  if (unit == 0) return;
  const int count = job.train.global_batch / unit;
  const std::vector<int> parts = balance::apportion(count, plan.shares);
  for (size_t i = 0; i < parts.size(); ++i) plan.shares[i] = double(parts[i]) / count;
  plan.shares_reason += "; in whole micro-batches of " + counted(unit, "sample");
}

void plan_step(const job::TrainJob& job, const Speeds& speeds, TrainPlan& plan) {
  const std::vector<std::string> names = job::device_names(job);
  std::vector<std::string> unknown;
  double step_s = 0;
  for (const int i : job::ranks_with(job, balance::Role::compute)) {
    if (!speeds[i]) unknown.push_back(names[i]);
    step_s = std::max(step_s, plan.shares[i] * job.train.global_batch / speeds[i].value_or(1));
  }
  if (!unknown.empty()) {
    plan.speed_reason = fmt::format("no run has measured this job on {} yet", fmt::join(unknown, ", "));
    return;
  }
  plan.step_s = step_s;
  plan.samples_per_s = job.train.global_batch / step_s;
  plan.speed_reason = "the speeds that earlier runs measured of each device alone";
  if (shares_devices(job)) plan.speed_reason += "; ranks that share one slow each other, which is not in it";
}

void plan_by_law(const job::TrainJob& job, const balance::Split& split, TrainPlan& plan) {
  const double batch = job.train.global_batch;
  plan.shares.clear();
  for (const int share : split.shares) plan.shares.push_back(share / batch);
  plan.shares_reason = "the shortest step, by what earlier runs of this job measured of each device alone";
  plan.state_shares = split.state;
  plan.step_s = split.step_s;
  plan.samples_per_s = batch / split.step_s;
  plan.speed_reason = fmt::format(
      "{:.3g} s for the longest part and {:.3g} s for the longest update, by what earlier runs measured of each device "
      "alone; what they exchange is not in it",
      split.part_s, split.update_s);
  if (shares_devices(job)) plan.speed_reason += ", nor that ranks on one device slow each other";
}

std::string line(const char* name, const std::string& value, const std::string& reason) {
  return wrapped(fmt::format("{}{}{}: {}", name, value.empty() ? "" : " ", value, reason), kPlanWidth);
}

/// What is free of the device's memory, as far as that is known.
struct Room {
  std::optional<double> bytes;
  bool is_free = false;  ///< else it is all that the device has
};

Room room_of(const Device& device) {
  if (!device.memory_bytes.has_value()) return {};
  const auto bytes = static_cast<double>(device.memory_bytes.value());
  if (!device.status.memory_used_bytes.has_value()) return {bytes};
  const auto used =
      static_cast<double>(device.status.memory_used_bytes.value() + device.status.memory_reserved_bytes.value_or(0));
  return {std::max(0.0, bytes - used), true};
}

std::string room_text(const Device& device) {
  const Room room = room_of(device);
  if (!room.bytes) return "-";
  return human_bytes(*room.bytes) + (room.is_free ? " free" : "");
}

/// As the run does it: in twice as many pieces until a step fits, down to single samples; never of micro-batches. A
/// device without samples has no more than what it holds.
PlannedMemory planned_memory(const job::TrainJob& job, const StepMemory& known, int samples, double room) {
  if (samples == 0) return {known.held_bytes, 1};
  const auto peak = [&](int piece) { return known.held_bytes + known.fixed_bytes + known.per_sample_bytes * piece; };
  if (const int unit = job.train.micro_batch; unit > 0)
    return {peak(std::min(samples, unit)), std::max(1, (samples + unit - 1) / unit)};
  int pieces = std::clamp(job.memory.accumulate, 1, std::max(1, samples));
  const auto piece = [&] { return (samples + pieces - 1) / pieces; };
  while (pieces < samples && room > 0 && peak(piece()) > room) pieces = std::min(2 * pieces, samples);
  return {peak(piece()), pieces};
}

void plan_memory(const job::TrainJob& job, const Inventory& inventory,
                 const std::vector<std::optional<StepMemory>>& known, TrainPlan& plan) {
  for (size_t i = 0; i < job.devices.size(); ++i) {
    const double room = room_of(chosen_device(inventory, job.devices[i].use)).bytes.value_or(0) /
                        job::ranks_on_device_of(job, static_cast<int>(i));
    const auto samples = static_cast<int>(std::lround(plan.shares[i] * job.train.global_batch));
    plan.memory.push_back(i < known.size() && known[i] ? std::optional(planned_memory(job, *known[i], samples, room))
                                                       : std::nullopt);
    if (i >= known.size() || !known[i] || known[i]->fetched_bytes <= plan.fetched_bytes) continue;
    plan.fetched_bytes = known[i]->fetched_bytes;
    plan.fetch_s = known[i]->fetch_s;
  }
}

/// "cpu:1 state: ..., cpu:2 preprocess: ..."; empty where all compute.
std::string role_lines(const job::TrainJob& job) {
  const std::vector<std::string> names = job::device_names(job);
  const auto with = [&](balance::Role role, const char* reason) {
    std::vector<std::string> those;
    for (const int rank : job::ranks_with(job, role)) those.push_back(names[rank]);
    return those.empty() ? "" : line(job::role_word(role).c_str(), fmt::format("{}", fmt::join(those, ", ")), reason);
  };
  return with(balance::Role::state,
              "no samples; optimizer state and its parameters for the others, all that fits in its memory") +
         with(balance::Role::preprocess, "no samples of its own; reads and prepares those of the others") +
         (has_roles(job)
              ? line("roles", "", "what they gain is predicted once each device is measured, and stands in the report")
              : "");
}

/// "12.0 MiB in 3.1 ms: what a pass fetches of the blocks, ..."
std::string blocks_line(const TrainPlan& plan) {
  if (plan.fetched_bytes <= 0)
    return line("blocks", "", "each device holds its part; what it takes to fetch the rest is measured at the start");
  return line("blocks", fmt::format("{} in {:.3g} ms", human_bytes(plan.fetched_bytes), 1e3 * plan.fetch_s),
              "what a pass fetches from the other devices, beside what it computes, as an earlier run measured it");
}

/// "gpu:0 14.2 GiB, gpu:1 9.1 GiB in 2 pieces: what a step takes at most, ..."
std::string memory_line(const job::TrainJob& job, const TrainPlan& plan) {
  const std::vector<std::string> names = job::device_names(job);
  std::vector<std::string> needs, unknown;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& need = plan.memory[i];
    if (!need) unknown.push_back(names[i]);
    if (!need) continue;
    const std::string pieces = need->pieces > 1 ? fmt::format(" in {} pieces", need->pieces) : "";
    needs.push_back(fmt::format("{} {}{}", names[i], human_bytes(need->peak_bytes), pieces));
  }
  const std::string shared = shares_devices(job) ? ", which ranks on one device share" : "";
  std::string reason = needs.empty() ? fmt::format("what the devices have is shown{}", shared)
                                     : "what a step takes at most, as an earlier run measured it";
  if (!unknown.empty())
    reason += fmt::format(
        "; what a step takes of {} is measured before the first one, as no run of this job on these devices has "
        "measured it yet",
        fmt::join(unknown, ", "));
  return line("memory", fmt::format("{}", fmt::join(needs, ", ")), reason);
}

bool has(const Device& device, const char* capability) {
  return place::Capability::parse(capability)->of(device).value_or(false);
}

/// "bf16 and fp16", of those that training would use on it; empty where that is not known. NVIDIA's products of fp16
/// are worth it from 7.0 on.
std::string abilities(const Device& device) {
  std::vector<std::string> able;
  if (has(device, "bf16")) able.emplace_back("bf16");
  if (has(device, "fp16") && (has(device, "sm_70") || !device.compute_capability.has_value()))
    able.emplace_back("fp16");
  return fmt::format("{}", fmt::join(able, " and "));
}

bool is_cpu_device(const Device& device) { return device.kind == DeviceKind::cpu; }

/// "bf16" or "fp16" where the job asks for that by name.
std::optional<std::string> type_by_name(const job::TrainJob& job) {
  if (job.train.precision == job::Precision::bf16) return "bf16";
  return job.train.precision == job::Precision::fp16 ? std::optional<std::string>("fp16") : std::nullopt;
}

/// Whether CPUs do not compute in the type that the job names. What is not known is not denied.
bool cpus_lack_type(const job::TrainJob& job, const TrainPlan& plan) {
  const auto type = type_by_name(job);
  return type && plan.worker && std::ranges::find(plan.worker->cpu_types, *type) == plan.worker->cpu_types.end();
}

/// What a device will compute in, as far as its hardware decides it, and the libtorch of the worker program where that
/// was asked.
std::string precision_of(const job::TrainJob& job, const TrainPlan& plan, const Device& device) {
  const std::string able = abilities(device);
  const auto asked = job.train.precision;
  if (const auto type = type_by_name(job)) {
    const bool can = is_cpu_device(device) ? !cpus_lack_type(job, plan) : able.find(*type) != std::string::npos;
    return can ? *type : "float32";
  }
  if (asked == job::Precision::fp32 || is_cpu_device(device) || able.empty()) return "float32";
  return able.substr(0, 4);
}

std::string precision_reason(const job::TrainJob& job, const TrainPlan& plan, const Inventory& inventory) {
  if (job.train.precision == job::Precision::automatic) return "the fastest type of each device's hardware";
  if (depends_on_libtorch(job, inventory) && cpus_lack_type(job, plan))
    return fmt::format(
        "as train.precision says, on devices that can; libtorch {} has no {} on this machine's CPUs that "
        "adds up in float32",
        plan.worker->libtorch, *type_by_name(job));
  if (job.train.precision != job::Precision::fp32)
    return "as train.precision says, on devices whose hardware and libtorch can, and float32 on the others";
  std::vector<std::string> able;
  std::set<std::string> seen;
  for (const auto& spec : job.devices)
    if (const std::string types = abilities(chosen_device(inventory, spec.use));
        !types.empty() && seen.insert(spec.use).second)
      able.push_back(fmt::format("{} could compute in {}", spec.use, types));
  return able.empty() ? "training computes in float32 on each device"
                      : fmt::format("training computes in float32 on each device, though {}", fmt::join(able, ", "));
}

}  // namespace

TrainPlan make_plan(const job::TrainJob& job, const Inventory& inventory, const Speeds& speeds,
                    const std::vector<std::optional<StepMemory>>& memory,
                    const std::vector<std::optional<StepCost>>& costs) {
  TrainPlan plan;
  if (const auto split = split_by_law(job, inventory, costs)) {
    plan_by_law(job, *split, plan);
  } else {
    plan_shares(job, inventory, speeds, plan);
    round_to_micro_batches(job, plan);
    if (has_roles(job)) plan.shares_reason += "; devices that have another role than to compute take no samples";
    plan_step(job, speeds, plan);
  }
  plan_memory(job, inventory, memory, plan);
  return plan;
}

bool depends_on_libtorch(const job::TrainJob& job, const Inventory& inventory) {
  return type_by_name(job) && std::ranges::any_of(job.devices, [&](const auto& spec) {
           return is_cpu_device(chosen_device(inventory, spec.use));
         });
}

Result<void> check_precision(const job::TrainJob& job, const Inventory& inventory, const TrainPlan& plan) {
  const bool all_lack_it = depends_on_libtorch(job, inventory) && cpus_lack_type(job, plan) &&
                           std::ranges::all_of(job.devices, [&](const auto& spec) {
                             return is_cpu_device(chosen_device(inventory, spec.use));
                           });
  if (!all_lack_it) return {};
  return usage_error(job::precision_refusal(job.train.precision, plan.worker->libtorch));
}

std::string collectives_reason(const job::TrainJob& job, const Inventory& inventory) {
  const std::string by_host = "through memory of the host: ";
  if (job.devices.size() == 1) return "they stay on the only device";
  if (job.elastic.ranks_lost > 0) return by_host + "elastic.ranks_lost is set";
  if (job.memory.parameters == job::Held::sharded) return by_host + "memory.parameters is \"sharded\"";
  if (job.train.deterministic == job::Switch::on) return by_host + "train.deterministic is set";
  if (job.train.device_collectives == job::Switch::off) return by_host + "train.device_collectives is \"off\"";
  const Device& first = chosen_device(inventory, job.devices[0].use);
  for (const auto& spec : job.devices) {
    const Device& device = chosen_device(inventory, spec.use);
    if (is_cpu_device(device)) return fmt::format("{}{} is a CPU", by_host, spec.use);
    if (device.vendor != first.vendor)
      return fmt::format("{}{} and {} have different makers", by_host, job.devices[0].use, spec.use);
  }
  if (shares_devices(job)) return by_host + "ranks share a device";
  return "from device to device, if the library of their maker passes a trial; else through memory of the host";
}

std::string plan_text(const job::TrainJob& job, const Inventory& inventory, const TrainPlan& plan,
                      const std::string& devices_reason) {
  Table table({"rank", "device", "model", "share", "samples", "memory", "precision"});
  table.cut_first(2);
  const std::vector<std::string> names = job::device_names(job);
  for (size_t rank = 0; rank < job.devices.size(); ++rank) {
    const Device& device = chosen_device(inventory, job.devices[rank].use);
    const bool computes = job::computes(job, static_cast<int>(rank));
    table.add({std::to_string(rank), device_label(names[rank], job.devices[rank].slowdown),
               printable(model_text(device)),
               computes ? fmt::format("{:.1f} %", 100 * plan.shares[rank]) : job::role_word(job.devices[rank].role),
               fmt::format("{:.0f}", plan.shares[rank] * job.train.global_batch), room_text(device),
               precision_of(job, plan, device)});
  }
  std::string text = table.text(kPlanWidth) + "\n";
  text += line("devices", "", devices_reason);
  text += line("shares", "", plan.shares_reason);
  if (!plan.state_shares.empty() && job.devices.size() > 1) {
    std::vector<std::string> parts;
    for (size_t rank = 0; rank < names.size(); ++rank)
      parts.push_back(fmt::format("{} {:.1f} %", names[rank], 100 * plan.state_shares[rank]));
    text += line("state", fmt::format("{}", fmt::join(parts, ", ")),
                 "of the parameters, that each updates for all, as far as it has room for their state");
  }
  text += role_lines(job);
  const std::string step =
      plan.step_s ? fmt::format("{:.4g} s, {} samples/s", *plan.step_s, rate_text(*plan.samples_per_s)) : "not known";
  text += line("step", step, plan.speed_reason);
  text += memory_line(job, plan);
  if (job.memory.parameters == job::Held::sharded) text += blocks_line(plan);
  text += line("precision", "", precision_reason(job, plan, inventory));
  if (job.train.gradients == job::Precision::bf16 && job.devices.size() > 1)
    text += line("gradients", "bf16", "as train.gradients says; half of the bytes, added up in float32");
  text += line("buckets", "", collectives_reason(job, inventory));
  if (job.train.compression != job::Compression::none)
    text += line("compression", job::name_of(job.train.compression),
                 job.train.compression == job::Compression::automatic
                     ? "unknown until the first steps are made, and each way to send has been tried between the hosts"
                     : "between hosts, after a warm-up; on one host nothing is compressed");
  return text;
}

Json to_json(const TrainPlan& plan) {
  Json json{{"shares", plan.shares}, {"reason", plan.speed_reason}};
  if (!plan.state_shares.empty()) json["state_shares"] = plan.state_shares;
  if (plan.step_s) json["step_s"] = *plan.step_s;
  if (plan.samples_per_s) json["samples_per_s"] = *plan.samples_per_s;
  return json;
}

}  // namespace remuda::cli

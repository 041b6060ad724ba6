#include "train/run_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "base/version.h"
#include "train/events.h"
#include "train/torch_compat.h"

namespace remuda::train {

double DeviceReport::alone_samples_per_s() const {
  if (alone_measurements.empty()) return 0;
  return std::accumulate(alone_measurements.begin(), alone_measurements.end(), 0.0) /
         static_cast<double>(alone_measurements.size());
}

double RunReport::ideal_samples_per_s() const {
  double sum = 0;
  for (const auto& device : devices)
    if (takes_samples(device.device.role)) sum += device.alone_samples_per_s();
  return sum;
}

double RunReport::efficiency() const {
  const double ideal = timed().ideal_samples;
  return ideal > 0 ? timed_samples / ideal : 0;
}

std::string RunReport::not_finite() const {
  if (steps > 0 && skipped_steps == steps)
    return fmt::format("loss or gradients were not finite in all {} steps: nothing was learned", steps);
  if (!has_finite_weights) return "weights are not finite at the end";
  if (test && !std::isfinite(test->loss)) return fmt::format("the test loss is {:f} at the end", std::abs(test->loss));
  if (!loss_per_epoch.empty() && !std::isfinite(loss_per_epoch.back()))
    return "loss or gradients were not finite in all steps of the last epoch";
  return "";
}

TimedSteps RunReport::timed() const {
  return {timed_samples, timed_s, before_loss.ideal_samples + ideal_samples_per_s() * (timed_s - before_loss.seconds)};
}

double RunReport::balance_efficiency() const {
  double compute_s = 0, wait_s = 0;
  for (const auto& device : devices) {
    if (!takes_samples(device.device.role)) continue;
    compute_s += device.compute_s;
    wait_s += device.wait_s;
  }
  return compute_s + wait_s > 0 ? compute_s / (compute_s + wait_s) : 0;
}

const char* to_string(balance::BalancePolicy policy) {
  switch (policy) {
    case balance::BalancePolicy::automatic:
      return "auto";
    case balance::BalancePolicy::even:
      return "even";
    case balance::BalancePolicy::fixed:
      return "fixed";
  }
  return "";
}

Json to_json(const CollectivesReport& report) {
  if (report.library.empty()) return {{"why_not", report.why_not}};
  Json json{{"library", report.library}, {"same_bits", report.same_bits}};
  if (report.bucket_bytes > 0) json["bucket_bytes"] = report.bucket_bytes;
  return json;
}

Json to_json(const ShardedReport& report) {
  return {{"blocks", report.blocks},
          {"largest_block_bytes", report.largest_block_bytes},
          {"bytes_per_pass", report.bytes_per_pass},
          {"predicted_s_per_pass", report.predicted_s_per_pass},
          {"s_per_pass", report.s_per_pass}};
}

Json to_json(const RoleReport& report) {
  Json json{{"predicted_step_s", report.step_s}, {"sentence", report.sentence}};
  if (report.without_step_s > 0) json["without_roles_s"] = report.without_step_s;
  for (const balance::Role role : report.proposed) json["proposed"].push_back(job::role_word(role));
  return json;
}

Json to_json(const RankLoss& loss) {
  return {{"rank", loss.rank},
          {"device", loss.device},
          {"cause", loss.cause},
          {"step", loss.step},
          {"resumed_from", loss.resumed_from},
          {"state", loss.state},
          {"seconds", loss.seconds}};
}

Json to_json(const RankJoin& join) {
  Json json{{"rank", join.rank}, {"device", join.device}, {"step", join.step}, {"seconds", join.seconds}};
  if (!join.failed.empty()) json["failed"] = join.failed;
  return json;
}

namespace {

/// What the peak is made of, and what was predicted of that. What is there before a step is known, so it is predicted.
Json kinds_json(const MemoryReport& memory, const MemoryNeed& need) {
  const double known = memory.parameters + memory.gradients + memory.optimizer;
  const auto kinds = [&](double held, double peak) -> Json {
    return {{"parameters", memory.parameters},
            {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},
            {"other", held - known},
            {"activations", peak - held}};
  };
  return {{"predicted", kinds(need.held, memory.predicted_peak)}, {"measured", kinds(memory.before, memory.peak)}};
}

Json spill_json(const SpillReport& spill) {
  Json json{{"bytes_per_pass", spill.bytes_per_pass}, {"predicted_s_per_pass", spill.predicted_s_per_pass}};
  if (std::isnan(spill.wait_s_per_pass))
    json["wait_missing"] = "libtorch takes no times on such a device";
  else
    json["wait_s_per_pass"] = spill.wait_s_per_pass;
  return json;
}

Json memory_json(const DeviceReport& device, int micro_batch) {
  const MemoryNeed& need = device.memory_need;
  const bool too_small = !device.alone_measurements.empty() && device.alone_measurements[0] == 0;
  if (need.known == 0 && too_small)
    return {{"missing", micro_batch > 0 ? "not one micro-batch fits in it" : "not one sample fits in it"}};
  if (need.known == 0 && device.alone_measurements.empty())
    return {{"missing", "the run was stopped before this device was measured"}};
  if (need.known == 0) return {{"missing", "libtorch does not count the tensors of such a device"}};
  Json json{{"held_bytes", need.held}, {"fixed_bytes", need.fixed}, {"per_sample_bytes", need.per_sample}};
  if (need.room > 0) json["room_bytes"] = need.room;
  if (device.memory.optimizer_on_host > 0) json["optimizer_on_host_bytes"] = device.memory.optimizer_on_host;
  if (device.spill.bytes_per_pass > 0) json["spilled"] = spill_json(device.spill);
  if (device.memory.peak == 0) {
    json["peak_missing"] = "the run was stopped before it had made a step";
    return json;
  }
  json["predicted_peak_bytes"] = device.memory.predicted_peak;
  json["peak_bytes"] = device.memory.peak;
  json["reserved_peak_bytes"] = device.memory.reserved_peak;
  json["peak_by_kind"] = kinds_json(device.memory, need);
  return json;
}

Json checkpoints_json(const CheckpointReport& report) {
  Json json{{"written", report.written}, {"failed", report.failed}, {"resumed_from", report.resumed_from}};
  if (report.resumed_from > 0) {
    json["balance"] = report.balance_kept ? "kept" : "measured anew";
    json["load_s"] = report.load_s;
  }
  if (report.written > 0) {
    json["bytes"] = report.bytes;
    json["write_s"] = report.write_s;
    json["background_s"] = report.background_s;
    json["held_s"] = report.held_s;
  }
  return json;
}

Json left_out_json(const LeftOutRank& one) {
  return {{"rank", one.rank},
          {"device", one.device},
          {"with_samples_per_s", one.with_samples_per_s},
          {"without_samples_per_s", one.without_samples_per_s},
          {"with_was_tried", one.was_tried}};
}

/// Who was lost, and who joined, where somebody was.
Json changes_json(const RunReport& report) {
  Json json = Json::object();
  for (const RankLoss& loss : report.lost_ranks) json["lost_ranks"].push_back(to_json(loss));
  for (const RankJoin& join : report.joined_ranks) json["joined_ranks"].push_back(to_json(join));
  return json;
}

Json device_json(const DeviceReport& device, int micro_batch) {
  Json json{{"id", device.device.use},
            {"slowdown", device.device.slowdown},
            {"role", job::role_word(device.device.role)},
            {"precision", precision_name(device.precision)},
            {"alone_measurements", device.alone_measurements},
            {"share", device.share},
            {"state_share", device.state_share},
            {"samples", int64_t(device.samples)},
            {"compute_s", device.compute_s},
            {"data_wait_s", device.data_wait_s},
            {"wait_s", device.wait_s},
            {"recompute_s", device.recompute_s},
            {"pieces", device.pieces},
            {"oom_steps", int64_t(device.oom_steps)},
            {"oom_evaluations", int64_t(device.oom_evaluations)},
            {"memory", memory_json(device, micro_batch)}};
  if (!device.alone_measurements.empty()) json["alone_samples_per_s"] = device.alone_samples_per_s();
  if (device.alone_part.seconds(1) > 0)
    json["alone_step"] = {{"fixed_s", device.alone_part.fixed_s},
                          {"per_sample_s", device.alone_part.per_sample_s},
                          {"update_s", device.alone_update_s}};
  if (device.unregistered.bytes > 0)
    json["unregistered"] = {{"bytes", device.unregistered.bytes}, {"why", device.unregistered.why.data()}};
  return json;
}

Json balance_json(const RunReport& report) {
  Json json{{"policy", to_string(report.policy)}, {"decisions", Json::array()}, {"state_moves", report.state_moves}};
  for (const auto& decision : report.decisions) json["decisions"].push_back(train::to_json(decision));
  for (const LeftOutRank& one : report.left_out) json["left_out"].push_back(left_out_json(one));
  if (report.least_samples > 1) json["least_samples"] = report.least_samples;
  if (report.micro_batch > 0) json["micro_batch"] = report.micro_batch;
  return json;
}

}  // namespace

Json to_json(const CompressionReport& report) {
  Json json{{"kind", job::name_of(report.kind)}};
  if (!report.chosen.empty()) json["chosen"] = report.chosen;
  if (report.why_not.empty())
    json["after_steps"] = report.after;
  else
    json["why_not"] = report.why_not;
  if (report.before) json["before"] = to_json(*report.before);
  if (report.since) json["since"] = to_json(*report.since);
  if (report.expected.empty()) return json;
  json["chosen_after"] = report.chosen_after;
  json["sends"] = compress::to_string(report.packing);
  for (const compress::Prediction& one : report.expected)
    json["expected"].push_back({{"sends", compress::to_string(one.packing)}, {"step_s", one.step_s}});
  return json;
}

Json to_json(const RunReport& report) {
  Json devices = Json::array();
  for (const DeviceReport& device : report.devices) devices.push_back(device_json(device, report.micro_batch));
  const bool all_measured = std::ranges::none_of(
      report.devices, [](const DeviceReport& device) { return device.alone_measurements.empty(); });
  Json json{{"devices", devices},
            {"communication_s", report.communication_s},
            {"share_changes", report.share_changes},
            {"balance", balance_json(report)},
            {"loss_per_epoch", report.loss_per_epoch}};
  if (report.steps > 0) json["balance_efficiency"] = report.balance_efficiency();
  if (all_measured) json["ideal_samples_per_s"] = report.ideal_samples_per_s();
  if (report.timed_s > 0) {
    json["samples_per_s"] = report.samples_per_s();
    json["efficiency"] = report.efficiency();
  }
  if (report.test) json.update({{"test_loss", report.test->loss}, {"test_accuracy", report.test->accuracy}});
  json["steps"] = report.steps;
  json["skipped_steps"] = report.skipped_steps;
  if (const std::string why = report.not_finite(); !why.empty()) json["not_finite"] = why;
  if (!report.batch_norm.empty()) json["batch_norm"] = report.batch_norm;
  json["oom_steps"] = report.oom_steps;
  if (report.checkpoints.any()) json["checkpoints"] = checkpoints_json(report.checkpoints);
  json.update(changes_json(report));
  if (report.recomputes) json["recomputes"] = true;
  if (report.spills) json["spills"] = true;
  json["seconds"] = report.seconds;
  json["transport"] = report.transport;
  json["device_collectives"] = to_json(report.collectives);
  json["parameters_sent_as"] = precision_name(report.sent_as);
  json["gradients_sent_as"] = precision_name(report.gradients_sent_as);
  if (report.compression) json["compression"] = to_json(*report.compression);
  if (report.roles) json["roles"] = to_json(*report.roles);
  if (report.sharded) json["sharded"] = to_json(*report.sharded);
  json["versions"] = {{"remuda", version()}, {"torch", TORCH_VERSION}};
  json["seed"] = report.seed;
  json["stopped"] = report.stopped;
  if (report.weights)
    json["weights"] = {
        {"format", report.weights->format}, {"tensors", report.weights->tensors}, {"bytes", report.weights->bytes}};
  for (const job::Unwritten& one : report.unwritten) json["unwritten"].push_back(job::to_json(one));
  if (!report.history.is_null()) json["history"] = report.history;
  if (!report.profile.is_null()) json["profile"] = report.profile;
  if (report.sample) json["sample"] = *report.sample;
  if (!report.sample_missing.empty()) json["sample_missing"] = report.sample_missing;
  return json;
}

}  // namespace remuda::train

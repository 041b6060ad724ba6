#include "cli/train/train_speeds.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "cli/train/train_devices.h"
#include "workers/event.h"

namespace remuda::cli {
namespace {

constexpr int kVersion = 1;
constexpr size_t kMostSpeeds = 1000;

/// Keys that change how many samples are trained on, or what is learnt of them, but not the work of one.
bool decides_work(const std::string& key) {
  static const std::set<std::string> kOthers{"train.epochs",   "train.max_steps",     "train.global_batch",
                                             "train.schedule", "train.learning_rate", "train.momentum",
                                             "train.seed",     "train.weight_decay",  "train.check_every",
                                             "model.weights",  "train.clip_norm",     "train.decay"};
  return !kOthers.contains(key) && !key.starts_with("balance.") && !key.starts_with("device.") &&
         !key.starts_with("output.");
}

/// Of the keys that `decides` is about.
template <typename Decides>
std::string fingerprint(const job::TrainJob& job, Decides decides) {
  std::string text;
  for (const auto& settings : {job::settings_of(job), job::files_of(job)})
    for (const job::Setting& setting : settings)
      if (decides(setting.key)) text += setting.key + '=' + setting.value + '\n';
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

/// Which devices there are, and what each of them holds of the optimizer's state.
std::string division_of(const job::TrainJob& job) {
  return fingerprint(job, [](const std::string& key) {
    return key.starts_with("device.") || key == "balance.state_shares" || key == "train.momentum";
  });
}

/// SGD without it has no state, and updates faster.
bool has_momentum(const job::TrainJob& job) { return job.train.momentum != 0; }

/// Ranks that share a CPU device compute with a part of its cores each, also alone.
std::string key_of(const job::TrainJob& job, size_t rank, const Inventory& inventory) {
  const Device& device = chosen_device(inventory, job.devices[rank].use);
  const bool is_cpu = device.kind == DeviceKind::cpu;
  const int ranks = job::ranks_on_device_of(job, static_cast<int>(rank));
  return fmt::format("{} {} {} {} {}{}", inventory.host, device.id,
                     is_cpu ? index_ranges(device.cores.value_or({})) : "", job.devices[rank].slowdown,
                     ranks > 1 ? fmt::format("1/{} ", ranks) : "", fingerprint(job, decides_work));
}

std::optional<std::string> path_of_speeds() {
  const auto folder = state_folder();
  return folder ? std::optional(*folder + "/train-speeds.json") : std::nullopt;
}

/// {"version": 1, "speeds": {KEY: {"samples_per_s": ..., "time_s": ..., "step"?, "memory"?}}}; empty where there is no
/// file.
Result<Json> read_speeds(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return Json::object();
  REMUDA_ASSIGN(const std::string text, read_text(path));
  REMUDA_ASSIGN(Json json, parse_json(text, path));
  if (!json.is_object() || json.value("version", Json()) != Json(kVersion) || !json.contains("speeds") ||
      !json["speeds"].is_object())
    return failed(fmt::format("{} does not hold speeds of version {}", path, kVersion));
  return std::move(json["speeds"]);
}

void forget_oldest(Json& speeds) {
  while (speeds.size() > kMostSpeeds) {
    auto oldest = speeds.begin();
    for (auto speed = speeds.begin(); speed != speeds.end(); ++speed)
      if (workers::number_field(*speed, "time_s") < workers::number_field(*oldest, "time_s")) oldest = speed;
    speeds.erase(oldest);
  }
}

/// What is kept of each device; null of one that is not known.
std::vector<Json> kept_of(const job::TrainJob& job, const Inventory& inventory) {
  const auto path = path_of_speeds();
  const auto speeds = path ? read_speeds(*path) : Result<Json>(Json::object());
  std::vector<Json> kept;
  for (size_t rank = 0; rank < job.devices.size(); ++rank)
    kept.push_back(speeds ? speeds->value(key_of(job, rank, inventory), Json()) : Json());
  return kept;
}

/// As a report has it; null where it was not measured.
Json memory_in(const Json& device, const Json& report, const job::TrainJob& job) {
  const Json memory = device.value("memory", Json::object());
  if (!(workers::number_field(memory, "held_bytes") > 0)) return {};
  Json kept{{"division", division_of(job)}};
  for (const char* key : {"held_bytes", "fixed_bytes", "per_sample_bytes"})
    kept[key] = workers::number_field(memory, key);
  if (const auto sharded = report.find("sharded"); sharded != report.end()) {
    kept["fetched_bytes"] = workers::number_field(*sharded, "bytes_per_pass");
    kept["fetch_s"] = workers::number_field(*sharded, "s_per_pass");
  }
  return kept;
}

}  // namespace

std::vector<std::optional<double>> known_speeds(const job::TrainJob& job, const Inventory& inventory) {
  std::vector<std::optional<double>> known;
  for (const Json& kept : kept_of(job, inventory)) {
    const double speed = workers::number_field(kept, "samples_per_s");
    known.push_back(speed > 0 ? std::optional(speed) : std::nullopt);
  }
  return known;
}

std::vector<std::optional<StepMemory>> known_memory(const job::TrainJob& job, const Inventory& inventory) {
  std::vector<std::optional<StepMemory>> known;
  for (const Json& kept : kept_of(job, inventory)) {
    const Json memory = kept.is_object() ? kept.value("memory", Json()) : Json();
    const double held = workers::number_field(memory, "held_bytes");
    known.push_back(held > 0 && workers::text_field(memory, "division") == division_of(job)
                        ? std::optional(StepMemory{held, workers::number_field(memory, "fixed_bytes"),
                                                   workers::number_field(memory, "per_sample_bytes"),
                                                   workers::number_field(memory, "fetched_bytes"),
                                                   workers::number_field(memory, "fetch_s")})
                        : std::nullopt);
  }
  return known;
}

std::vector<std::optional<StepCost>> known_costs(const job::TrainJob& job, const Inventory& inventory) {
  std::vector<std::optional<StepCost>> known;
  for (const Json& kept : kept_of(job, inventory)) {
    const Json step = kept.is_object() ? kept.value("step", Json()) : Json();
    const StepCost cost{{std::max(0.0, workers::number_field(step, "fixed_s")),
                         std::max(0.0, workers::number_field(step, "per_sample_s"))},
                        workers::number_field(step, "update_s")};
    const bool is_known = std::isnormal(cost.part.seconds(1)) && std::isnormal(cost.update_s) && cost.update_s > 0 &&
                          step.value("momentum", Json()) == Json(has_momentum(job));
    known.push_back(is_known ? std::optional(cost) : std::nullopt);
  }
  return known;
}

Result<void> keep_speeds(const Json& report, const job::TrainJob& job, const Inventory& inventory) {
  const auto path = path_of_speeds();
  if (!path) return {};
  REMUDA_ASSIGN(Json speeds, read_speeds(*path));
  const Json devices = report.value("devices", Json::array());
  for (size_t rank = 0; rank < std::min(devices.size(), job.devices.size()); ++rank) {
    const double speed = workers::number_field(devices[rank], "alone_samples_per_s");
    if (workers::text_field(devices[rank], "id") != job.devices[rank].use || !(speed > 0)) continue;
    Json& kept = speeds[key_of(job, rank, inventory)] = {{"samples_per_s", speed}, {"time_s", wall_s()}};
    if (Json step = devices[rank].value("alone_step", Json()); step.is_object()) {
      step["momentum"] = has_momentum(job);
      kept["step"] = std::move(step);
    }
    if (Json memory = memory_in(devices[rank], report, job); !memory.is_null()) kept["memory"] = std::move(memory);
  }
  forget_oldest(speeds);
  REMUDA_TRY(make_folder(*state_folder()));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(*path));
  return file.commit(to_pretty(Json{{"version", kVersion}, {"speeds", std::move(speeds)}}));
}

}  // namespace remuda::cli

#include "cli/train/train_speeds.h"

#include <algorithm>
#include <cerrno>
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

std::string fingerprint(const job::TrainJob& job) {
  std::string text;
  for (const auto& settings : {job::settings_of(job), job::files_of(job)})
    for (const job::Setting& setting : settings)
      if (decides_work(setting.key)) text += setting.key + '=' + setting.value + '\n';
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

/// Ranks that share a CPU device compute with a part of its cores each, also alone.
std::string key_of(const job::TrainJob& job, size_t rank, const Inventory& inventory) {
  const Device& device = chosen_device(inventory, job.devices[rank].use);
  const bool is_cpu = device.kind == DeviceKind::cpu;
  const int ranks = job::ranks_on_device_of(job, static_cast<int>(rank));
  return fmt::format("{} {} {} {} {}{}", inventory.host, device.id,
                     is_cpu ? index_ranges(device.cores.value_or({})) : "", job.devices[rank].slowdown,
                     ranks > 1 ? fmt::format("1/{} ", ranks) : "", fingerprint(job));
}

std::optional<std::string> path_of_speeds() {
  const auto folder = state_folder();
  return folder ? std::optional(*folder + "/train-speeds.json") : std::nullopt;
}

/// {"version": 1, "speeds": {KEY: {"samples_per_s": ..., "time_s": ...}}}; empty where there is no file.
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

}  // namespace

std::vector<std::optional<double>> known_speeds(const job::TrainJob& job, const Inventory& inventory) {
  const auto path = path_of_speeds();
  const auto speeds = path ? read_speeds(*path) : Result<Json>(Json::object());
  std::vector<std::optional<double>> known;
  for (size_t rank = 0; rank < job.devices.size(); ++rank) {
    const std::string key = key_of(job, rank, inventory);
    const double speed = speeds && speeds->contains(key) ? workers::number_field((*speeds)[key], "samples_per_s") : 0;
    known.push_back(speed > 0 ? std::optional(speed) : std::nullopt);
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
    speeds[key_of(job, rank, inventory)] = {{"samples_per_s", speed}, {"time_s", wall_s()}};
  }
  forget_oldest(speeds);
  REMUDA_TRY(make_folder(*state_folder()));
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(*path));
  return file.commit(to_pretty(Json{{"version", kVersion}, {"speeds", std::move(speeds)}}));
}

}  // namespace remuda::cli

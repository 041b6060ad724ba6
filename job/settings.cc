#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "job/schema.h"
#include "job/train_job.h"

namespace remuda::job {
namespace {

bool is_path(const Key& key) { return std::holds_alternative<PathField>(key.field); }
bool is_of_device(const Key& key) { return key.name.starts_with("device."); }
bool is_of_placement(const Key& key) { return key.name.starts_with("placement."); }

/// Keys of a [[device]] are those of the last device, so each device is asked in a job of its own.
void add_device(int number, const DeviceSpec& device, std::vector<Setting>& settings) {
  TrainJob alone;
  alone.devices = {device};
  for (const Key& key : job_keys())
    if (is_of_device(key))
      settings.push_back({fmt::format("{} of device {}", key.name, number), stored(key.field, alone)});
}

/// The keys of paths that are given, of one use.
std::vector<Setting> paths_of(TrainJob job, PathField::Use use) {
  std::vector<Setting> files;
  for (const Key& key : job_keys()) {
    const auto* field = std::get_if<PathField>(&key.field);
    if (!field || field->use != use) continue;
    const std::string& path = field->member(job);
    if (!path.empty()) files.push_back({key.name, path});
  }
  return files;
}

}  // namespace

std::vector<Setting> settings_of(const TrainJob& job) {
  TrainJob copy = job;  // looking at a key of a table that is not there adds it
  std::vector<Setting> settings;
  for (const Key& key : job_keys())
    if (!is_path(key) && !is_of_device(key) && !is_of_placement(key))
      settings.push_back({key.name, stored(key.field, copy)});
  for (size_t i = 0; i < job.devices.size(); ++i) add_device(static_cast<int>(i), job.devices[i], settings);
  return settings;
}

std::vector<Setting> settings_to_join(const TrainJob& job) {
  TrainJob common = job;
  common.devices.clear();
  common.elastic.join.clear();
  common.checkpoint.resume = Switch::off;
  std::vector<Setting> settings = settings_of(common);
  settings.push_back({"checkpoint.folder", job.checkpoint.folder.empty() ? "not given" : "given"});
  return settings;
}

std::vector<std::string> device_names(const TrainJob& job) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : job.devices) names.push_back(device.use);
  return made_distinct(std::move(names));
}

const char* name_of(Compression compression) {
  constexpr const char* kNames[] = {"none", "1-bit", "powersgd", "auto"};
  return kNames[static_cast<size_t>(compression)];
}

int share_unit(const TrainJob& job) { return job.balance.unit == Unit::microbatches ? job.train.micro_batch : 1; }

int ranks_on_device_of(const TrainJob& job, int rank) {
  return static_cast<int>(std::ranges::count(job.devices, job.devices.at(rank).use, &DeviceSpec::use));
}

std::vector<int> ranks_with(const TrainJob& job, balance::Role role) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < job.devices.size(); ++rank)
    if (roles_of(job)[rank] == role) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

bool computes(const TrainJob& job, int rank) { return takes_samples(job.devices.at(static_cast<size_t>(rank)).role); }

std::vector<balance::Role> roles_of(const TrainJob& job) {
  std::vector<balance::Role> roles;
  for (const DeviceSpec& device : job.devices)
    roles.push_back(takes_samples(device.role) ? balance::Role::compute : device.role);
  return roles;
}

std::string role_word(balance::Role role) {
  TrainJob job;
  job.devices = {{.role = role}};
  return stored(find_key("device.role")->field, job);
}

TrainJob on_ranks(TrainJob job, const std::vector<int>& ranks) {
  const auto keep = [&](auto& of_all) {
    if (of_all.empty()) return;
    std::remove_reference_t<decltype(of_all)> kept;
    for (const int rank : ranks) kept.push_back(of_all.at(static_cast<size_t>(rank)));
    of_all = std::move(kept);
  };
  keep(job.devices);
  keep(job.balance.shares);
  keep(job.balance.state_shares);
  return job;
}

std::vector<Setting> files_of(const TrainJob& job) { return paths_of(job, PathField::Use::read); }

std::vector<Setting> outputs_of(const TrainJob& job) { return paths_of(job, PathField::Use::written); }

}  // namespace remuda::job

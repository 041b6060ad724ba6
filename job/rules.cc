#include "job/rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <vector>

#include "base/host_port.h"
#include "base/text.h"
#include "job/compression.h"
#include "job/document.h"
#include "job/schema.h"

namespace remuda::job {
namespace {

/// Where a value was given, or the file when it was not.
std::string place_of(toml::table& table, const std::string& key, const std::string& name) {
  const toml::node* node = find_node(table, key);
  return node ? origin(*node) : name;
}

Result<void> settle_model(toml::table& table, const std::string& name) {
  const toml::node* built_in = find_node(table, "model.name");
  const toml::node* path = find_node(table, "model.path");
  if (!built_in && !path)
    return usage_error(fmt::format("{}: a job needs model.name (mlp, resnet or gpt) or model.path", name));
  if (!built_in || !path) return {};
  if (is_from_command_line(*built_in) == is_from_command_line(*path))
    return usage_error(fmt::format("{}: give model.name or model.path, not both", origin(*path)));
  erase_node(table, is_from_command_line(*path) ? "model.name" : "model.path");
  return {};
}

/// The word a choice has in this job; nothing when what is given is no such word, which is told later.
std::optional<std::string> word_of(const Key& key, toml::table& table) {
  TrainJob job;
  const toml::node* node = find_node(table, key.name);
  if (node && !store(key.field, *node, job)) return std::nullopt;
  return stored(key.field, job);
}

std::string misplaced(const Key& key, toml::table& table) {
  if (key.when->words.empty()) return fmt::format("{} is only for jobs with {}", key.name, key.when->key);
  const std::string word = word_of(*find_key(key.when->key), table).value_or("");
  const std::string has = word.empty() ? "model.path" : fmt::format("{} = \"{}\"", key.when->key, word);
  return fmt::format("{} is for {} \"{}\", but this job has {}", key.name, key.when->key,
                     fmt::join(key.when->words, "\" or \""), has);
}

/// Whether the command line chose this kind; a model's is chosen by name or by path.
bool is_kind_from_command_line(const std::string& key, toml::table& table) {
  const bool of_model = key == "model.name" || key == "model.path";
  for (const std::string& choice : of_model ? std::vector<std::string>{"model.name", "model.path"} : std::vector{key})
    if (const toml::node* node = find_node(table, choice); node && is_from_command_line(*node)) return true;
  return false;
}

Result<void> check_model(const TrainJob& job, toml::table& table, const std::string& name) {
  const ModelSpec& model = job.model;
  const bool tokens = job.data.format == DataFormat::tokens;
  if (!model.name.empty() && (model.name == "gpt") != tokens)
    return usage_error(fmt::format("{}: model {} needs data.format = {}", place_of(table, "data.format", name),
                                   model.name, tokens ? "\"images\", \"idx\" or \"cifar\"" : "\"tokens\""));
  if (model.name == "gpt" && model.width % model.heads != 0)
    return usage_error(fmt::format("{}: model.width must be a multiple of model.heads, but they are {} and {}",
                                   place_of(table, "model.width", name), model.width, model.heads));
  return {};
}

Result<void> check_micro_batch(const TrainJob& job, toml::table& table, const std::string& name) {
  const int batch = job.train.global_batch, unit = share_unit(job);
  if (batch % unit == 0) return {};
  return usage_error(
      fmt::format("{}: train.global_batch must be a multiple of train.micro_batch, but they are {} and {}",
                  place_of(table, "train.micro_batch", name), batch, unit));
}

Result<void> check_batch_norm(const TrainJob& job, toml::table& table, const std::string& name) {
  if (job.train.batch_norm == BatchNorm::local || (job.model.name == "resnet" && job.model.norm == Norm::batch))
    return {};
  return usage_error(fmt::format("{}: {}", place_of(table, "train.batch_norm", name), synchronized_norm_refusal()));
}

/// Which algorithm is the fastest differs from time to time.
Result<void> check_deterministic(const TrainJob& job, toml::table& table, const std::string& name) {
  if (job.train.deterministic == Switch::off || job.train.autotune == Switch::off) return {};
  return usage_error(
      fmt::format("{}: train.deterministic = \"on\" does not go together with train.autotune = \"on\", which takes the "
                  "algorithm that is the fastest at the time",
                  place_of(table, "train.deterministic", name)));
}

/// A sample is text: its tokens are bytes.
Result<void> check_sample(const TrainJob& job, toml::table& table, const std::string& name) {
  constexpr int kBytes = 256;
  const int vocabulary = job.model.vocabulary;
  if (job.output.sample == 0) return {};
  const std::string prompt = job.output.prompt.empty() ? "\n" : job.output.prompt;
  if (vocabulary > kBytes)
    return usage_error(
        fmt::format("{}: output.sample is for models of bytes, but model.vocabulary is {}; it must be at most {}",
                    place_of(table, "output.sample", name), vocabulary, kBytes));
  for (const unsigned char byte : prompt)
    if (byte >= vocabulary)
      return usage_error(fmt::format("{}: output.prompt has byte {}; model.vocabulary is {}",
                                     place_of(table, "output.prompt", name), byte, vocabulary));
  return {};
}

/// A built-in model has no program that TorchScript could hold.
Result<void> check_output(const TrainJob& job, toml::table& table, const std::string& name) {
  const std::string& file = job.output.weights;
  const bool is_script = file.ends_with(".pt") || file.ends_with(".pth") || file.ends_with(".ts");
  if (is_script && job.model.path.empty())
    return usage_error(
        fmt::format("{}: output.weights must end in .safetensors, as only a model given by model.path can be written "
                    "as TorchScript",
                    place_of(table, "output.weights", name)));
  return check_sample(job, table, name);
}

Result<void> check_compression(const TrainJob& job, toml::table& table, const std::string& name) {
  const std::string what = conflict_with(job.train.compression, job);
  if (what.empty()) return {};
  return usage_error(fmt::format("{}: train.compression = \"{}\" does not go together with {}",
                                 place_of(table, "train.compression", name), name_of(job.train.compression), what));
}

/// What sharded parameters have no place for.
Result<void> check_sharded(const TrainJob& job, toml::table& table, const std::string& name) {
  const MemorySpec& memory = job.memory;
  if (memory.parameters == Held::whole) return {};
  const bool all_recomputed = memory.recompute == Recompute::blocks && memory.recompute_blocks == 0;
  const std::pair<const char*, bool> others[] = {
      {"memory.recompute = \"auto\", which tries first what fits without; say \"blocks\" or \"none\"",
       memory.recompute == Recompute::automatic},
      {"a train.precision of 16 bits unless memory.recompute is \"blocks\", for all of them: the blocks' parameters "
       "in 16 bits would stay for the backward pass",
       job.train.precision != Precision::fp32 && !all_recomputed},
      {"train.gradients = \"bf16\": a block's gradients are added up as they are",
       job.train.gradients != Precision::fp32},
      {"train.compression, which needs all parameters on each device: leave one of the two out",
       job.train.compression != Compression::none},
      {"train.batch_norm = \"synchronized\", whose calls are learned from a pass of one device with the whole model",
       job.train.batch_norm == BatchNorm::synchronized},
      {"elastic.ranks_lost: a run does not go on after a loss in the middle of a pass", job.elastic.ranks_lost > 0},
      {"output.sample, which one device generates with the whole model", job.output.sample > 0},
      {"output.weights as TorchScript, which is written from the whole model; name a *.safetensors file",
       !job.model.path.empty() && job.output.weights.ends_with(".pt")}};
  for (const auto& [what, is_there] : others)
    if (is_there)
      return usage_error(fmt::format("{}: memory.parameters = \"sharded\" does not go together with {}",
                                     place_of(table, "memory.parameters", name), what));
  return {};
}

/// What has no place for a device that joins later, and where it would.
Result<void> check_join(const TrainJob& job, toml::table& table, const std::string& name) {
  if (job.elastic.join.empty()) return {};
  const std::string place = place_of(table, "elastic.join", name);
  const auto address = parse_host_port(job.elastic.join);
  if (!address)
    return usage_error(
        fmt::format("{}: elastic.join is \"{}\"; it must be :PORT or HOST:PORT", place, printable(job.elastic.join)));
  if (address->host == "0.0.0.0" || address->host == "::")
    return usage_error(
        fmt::format("{}: elastic.join must name the one address of this host at which the others reach it", place));
  const auto takes_none = [](const DeviceSpec& device) { return !takes_samples(device.role); };
  const std::pair<const char*, bool> others[] = {
      {"balance.policy = \"fixed\", which has no weight for one more device",
       job.balance.policy == balance::BalancePolicy::fixed},
      {"balance.state_shares, which have no weight for one more device", !job.balance.state_shares.empty()},
      {"memory.parameters = \"sharded\": what a device holds of the blocks cannot change in a run",
       job.memory.parameters == Held::sharded},
      {"the role of a device other than to compute: what it gains is known of the devices at the start",
       std::ranges::any_of(job.devices, takes_none)}};
  for (const auto& [what, is_there] : others)
    if (is_there) return usage_error(fmt::format("{}: elastic.join does not go together with {}", place, what));
  return {};
}

/// What devices that take no samples, and own what nobody gave them by name, have no place for.
Result<void> check_roles(const TrainJob& job, toml::table& table) {
  using balance::Role;
  auto spec = job.devices.begin();
  Result<void> result;
  std::string last;
  for_each_device(table, [&](toml::table& device) {
    const Role role = (spec++)->role;
    last = origin(*device.get("use"));
    if (takes_samples(role) || !result) return;
    const bool is_state = role == Role::state;
    const std::pair<const char*, bool> others[] = {
        {"balance.policy = \"fixed\", which gives each device samples",
         job.balance.policy == balance::BalancePolicy::fixed},
        {"balance.state_shares, which gives each device a part of the state", !job.balance.state_shares.empty()},
        {"memory.optimizer = \"host\", which keeps each device's state in memory of its host",
         is_state && job.memory.optimizer == UpdatesOn::host},
        {"train.compression, which keeps all of the optimizer's state on each device: leave that key out, or give the "
         "device the role compute",
         is_state && job.train.compression != Compression::none}};
    for (const auto& [what, is_there] : others)
      if (is_there && result)
        result = usage_error(fmt::format("{}: role = \"{}\" does not go together with {}", origin(*device.get("role")),
                                         role_word(role), what));
  });
  REMUDA_TRY(result);
  if (job.devices.empty() || !ranks_with(job, Role::compute).empty()) return {};
  return usage_error(fmt::format("{}: {}", last, nobody_computes()));
}

Result<void> check_devices(const TrainJob& job, toml::table& table) {
  std::map<std::string, bool> shared_so_far;
  auto spec = job.devices.begin();
  Result<void> result;
  for_each_device(table, [&](toml::table& device) {
    const auto [so_far, is_first] = shared_so_far.emplace(spec->use, spec->shared);
    so_far->second = so_far->second && spec->shared;
    if (!is_first && !so_far->second && result)
      result = usage_error(fmt::format("{}: {}", origin(*device.get("use")), named_twice(spec->use)));
    ++spec;
  });
  return result;
}

}  // namespace

std::string named_twice(const std::string& device) {
  return fmt::format(
      "device {} is named twice; for several ranks on it, write shared = true in each [[device]] that names it",
      device);
}

std::string nobody_computes() {
  return "no device of this job takes samples: at least one needs role = \"compute\", which it has unless given";
}

std::string precision_refusal(Precision precision, const std::string& libtorch) {
  return fmt::format(
      "no device of this job computes in {} with libtorch {} and adds up in float32; take train.precision = \"auto\" "
      "or \"fp32\"",
      precision == Precision::bf16 ? "bf16" : "fp16", libtorch);
}

std::string batch_too_small(const TrainJob& job) {
  const size_t devices = ranks_with(job, balance::Role::compute).size();
  const int unit = share_unit(job);
  if (static_cast<size_t>(job.train.global_batch / unit) >= devices) return "";
  return fmt::format("train.global_batch is {}, but each of the {} devices needs at least one {}",
                     job.train.global_batch, devices,
                     unit == 1 ? "sample" : fmt::format("micro-batch of {} samples", unit));
}

std::string synchronized_norm_refusal() {
  return "train.batch_norm = \"synchronized\" is for model.norm = \"batch\" of the built-in resnet; that of a "
         "TorchScript "
         "model stays each device's own, of equal batches with balance.unit = \"microbatches\"";
}

bool belongs(const Key& key, toml::table& table) {
  if (!key.when) return true;
  if (key.when->words.empty()) return find_node(table, key.when->key);
  const auto word = word_of(*find_key(key.when->key), table);
  return !word || std::ranges::find(key.when->words, *word) != key.when->words.end();
}

Result<void> settle_kinds(toml::table& table, const std::string& name) {
  REMUDA_TRY(settle_model(table, name));
  for (const Key& key : job_keys()) {
    const toml::node* node = find_node(table, key.name);
    if (!node || belongs(key, table)) continue;
    if (!is_kind_from_command_line(key.when->key, table) || is_from_command_line(*node))
      return usage_error(fmt::format("{}: {}", origin(*node), misplaced(key, table)));
    erase_node(table, key.name);
  }
  return {};
}

Result<void> check_job(const TrainJob& job, toml::table& table, const std::string& name) {
  REMUDA_TRY(check_model(job, table, name));
  REMUDA_TRY(check_output(job, table, name));
  REMUDA_TRY(check_micro_batch(job, table, name));
  REMUDA_TRY(check_batch_norm(job, table, name));
  REMUDA_TRY(check_deterministic(job, table, name));
  REMUDA_TRY(check_compression(job, table, name));
  REMUDA_TRY(check_sharded(job, table, name));
  REMUDA_TRY(check_join(job, table, name));
  if (job.placement.same_model && job.placement.any_model)
    return usage_error(fmt::format("{}: placement.same_model and placement.any_model exclude each other",
                                   origin(*find_node(table, "placement.any_model"))));
  if (job.placement.asks() && !job.devices.empty())
    return usage_error(fmt::format("{}: [placement] asks for devices, and [[device]] names some: give one of them",
                                   origin(*find_node(table, "placement"))));
  REMUDA_TRY(check_roles(job, table));
  return check_devices(job, table);
}

Result<void> check_counts(const TrainJob& job, toml::table& table, const std::string& name) {
  const size_t devices = job.devices.size(), shares = job.balance.shares.size();
  if (job.balance.policy == balance::BalancePolicy::fixed && shares == 0)
    return usage_error(
        fmt::format("{}: balance.shares must have a weight for each device", place_of(table, "balance.shares", name)));
  if (devices == 0) return {};
  if (const std::string missed = batch_too_small(job); !missed.empty())
    return usage_error(fmt::format("{}: {}", place_of(table, "train.global_batch", name), missed));
  if (job.balance.policy == balance::BalancePolicy::fixed && shares != devices)
    return usage_error(fmt::format("{}: balance.shares must have one weight per device, but has {} for {} device{}",
                                   place_of(table, "balance.shares", name), shares, devices, devices == 1 ? "" : "s"));
  if (const size_t state = job.balance.state_shares.size(); state != 0 && state != devices)
    return usage_error(
        fmt::format("{}: balance.state_shares must have one weight per device, but has {} for {} device{}",
                    place_of(table, "balance.state_shares", name), state, devices, devices == 1 ? "" : "s"));
  return {};
}

}  // namespace remuda::job

#include "parallel/check_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <xxhash.h>

#include "base/characters.h"
#include "base/text.h"
#include "parallel/raise.h"
#include "train/agreement.h"
#include "train/labels.h"
#include "train/precision.h"

namespace remuda::parallel {
namespace {

job::Precision precision_of(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return job::Precision::bf16;
    case Precision::fp16:
      return job::Precision::fp16;
    case Precision::automatic:
      return job::Precision::automatic;
    case Precision::fp32:
      break;
  }
  return job::Precision::fp32;
}

/// What is wrong with numbers among the options, in one sentence; empty where nothing is.
std::string fault_of_numbers(const Options& options) {
  struct Rule {
    const char* name;
    double value;
    bool (*holds)(double);
    const char* right;
  };
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  const auto is_part = [](double value) { return value >= 0 && value < 1; };
  std::vector<Rule> rules{
      {"Options::weight_decay", options.weight_decay, not_negative, "0 or more"},
      {"Options::clip_norm", options.clip_norm, [](double value) { return value >= 0; }, "0 or more"},
      {"Options::average", options.average, is_part, "at least 0 and below 1"},
      {"Options::bucket_mib", options.bucket_mib, [](double value) { return value > 0; }, "above 0"}};
  if (const auto* sgd = std::get_if<Sgd>(&options.optimizer))
    rules.push_back({"Sgd::momentum", sgd->momentum, not_negative, "0 or more"});
  if (const auto* adamw = std::get_if<AdamW>(&options.optimizer)) {
    rules.push_back({"AdamW::beta1", adamw->beta1, is_part, "at least 0 and below 1"});
    rules.push_back({"AdamW::beta2", adamw->beta2, is_part, "at least 0 and below 1"});
    rules.push_back({"AdamW::epsilon", adamw->epsilon, not_negative, "0 or more"});
  }
  if (options.micro_batch < 1)
    return fmt::format("Options::micro_batch is {}; it must be 1 or more", options.micro_batch);
  for (const Rule& rule : rules)
    if (!rule.holds(rule.value)) return fmt::format("{} is {}; it must be {}", rule.name, rule.value, rule.right);
  return "";
}

std::string fault_of_proportions(const char* name, const std::vector<double>& proportions, int ranks) {
  if (proportions.empty()) return "";
  bool usable = proportions.size() == size_t(ranks);
  double sum = 0;
  for (const double one : proportions) {
    usable = usable && std::isfinite(one) && one >= 0;
    sum += one;
  }
  if (usable && sum > 0) return "";
  return fmt::format("{} is {{{}}}; it must have {} {}, one per rank, not negative, and not all 0", name,
                     fmt::join(proportions, ", "), ranks, ranks == 1 ? "value" : "values");
}

std::string fault_of_parameters(const std::vector<train::NamedTensor>& parameters, torch::Device device) {
  if (parameters.empty()) return "the module has no parameter that requires a gradient; there is nothing to train";
  std::unordered_map<const void*, std::string> at;
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.device() != device)
      return fmt::format("{} is on {}, but this rank computes on {}: call module.to(group.device()) first", name,
                         tensor.device().str(), device.str());
    if (!tensor.is_leaf())
      return fmt::format("{} is the result of a computation; only a leaf of the graph can be trained", name);
    const auto [known, is_new] = at.try_emplace(tensor.data_ptr(), name);
    if (tensor.numel() > 0 && !is_new)
      return fmt::format("{} and {} are two tensors in the same memory; to tie them, use one tensor for both", name,
                         known->second);
    tensors.push_back(tensor);
  }
  const auto trainable = train::check_types(tensors);
  return trainable ? "" : trainable.error().message;
}

torch::ScalarType wanted_by_name(Precision precision) {
  if (precision == Precision::bf16) return torch::kBFloat16;
  return precision == Precision::fp16 ? torch::kHalf : torch::ScalarType::Undefined;
}

const char* text_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::automatic:
      break;
  }
  return "automatic";
}

std::string fault_of_gradients(const Candidate& mine) {
  const Precision gradients = mine.options.gradients;
  if (gradients == Precision::fp32) return "";
  if (gradients != Precision::bf16)
    return fmt::format("Options::gradients is {}; it must be fp32 or bf16", text_of(gradients));
  if (mine.compute_type != torch::kDouble) return "";
  return "Options::gradients is bf16, but the parameters are float64; it is for those of float32";
}

std::string fault_of_precision(const Candidate& mine) {
  const torch::ScalarType wanted = wanted_by_name(mine.options.precision);
  if (wanted == torch::ScalarType::Undefined || mine.compute_type != torch::kDouble) return "";
  return fmt::format("Options::precision is {}, but the parameters are float64; it is for those of float32",
                     train::precision_name(wanted));
}

std::string fault_of_norms(const Candidate& mine, int ranks) {
  if (mine.norms == 0 || mine.options.trial || ranks == 1) return "";
  return "the module has a SynchronizedBatchNorm, but Options::trial is not set; it shows the order of their calls";
}

std::string fault_of(const Candidate& mine, int ranks) {
  const Options& options = mine.options;
  for (std::string fault : {fault_of_numbers(options), fault_of_proportions("Options::shares", options.shares, ranks),
                            fault_of_proportions("Options::state_shares", options.state_shares, ranks),
                            fault_of_parameters(mine.parameters, mine.device), fault_of_precision(mine),
                            fault_of_gradients(mine), fault_of_norms(mine, ranks)})
    if (!fault.empty()) return fault;
  return "";
}

struct Setting {
  const char* name;
  std::string value;
};
constexpr size_t kSettings = 11;

std::string text_of(const std::variant<Sgd, AdamW>& optimizer) {
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) return fmt::format("Sgd{{{}}}", sgd->momentum);
  const auto& adamw = std::get<AdamW>(optimizer);
  return fmt::format("AdamW{{{}, {}, {}}}", adamw.beta1, adamw.beta2, adamw.epsilon);
}

std::string names_without_decay(const Candidate& mine) {
  std::vector<std::string> names;
  for (size_t i = 0; i < mine.groups.size(); ++i)
    if (mine.groups[i] == 1) names.push_back(mine.parameters[i].name);
  return names.empty() ? "true for no parameter" : fmt::format("true for {}", fmt::join(names, ", "));
}

/// The options that must be the same on all ranks, as text.
std::array<Setting, kSettings> settings_of(const Candidate& mine) {
  const Options& options = mine.options;
  return {{{"optimizer", text_of(options.optimizer)},
           {"weight_decay", fmt::to_string(options.weight_decay)},
           {"without_decay", names_without_decay(mine)},
           {"gradients", text_of(options.gradients)},
           {"clip_norm", fmt::to_string(options.clip_norm)},
           {"average", fmt::to_string(options.average)},
           {"shares", fmt::format("{{{}}}", fmt::join(options.shares, ", "))},
           {"micro_batch", fmt::to_string(options.micro_batch)},
           {"state_shares", fmt::format("{{{}}}", fmt::join(options.state_shares, ", "))},
           {"bucket_mib", fmt::to_string(options.bucket_mib)},
           {"device_collectives", fmt::to_string(options.device_collectives)}}};
}

/// Text of any length, of which the others get the beginning.
struct Excerpt {
  Excerpt() = default;
  explicit Excerpt(const std::string& whole) : hash(XXH3_64bits(whole.data(), whole.size())) {
    constexpr size_t kMostBytesOfACharacter = 4;
    shortened(printable(whole), (text.size() - 1) / kMostBytesOfACharacter).copy(text.data(), text.size() - 1);
  }
  uint64_t hash = 0;
  std::array<char, 1016> text{};
};

/// What a rank reports to the others.
struct Entry {
  Excerpt fault;
  std::array<Excerpt, kSettings> settings;
  torch::ScalarType wanted, computed;  ///< wanted: by name, or Undefined
};
static_assert(std::is_trivially_copyable_v<Entry>);

void refuse_difference(const std::array<Setting, kSettings>& settings, const std::vector<Entry>& entries) {
  for (size_t i = 0; i < kSettings; ++i)
    for (size_t rank = 1; rank < entries.size(); ++rank) {
      const Excerpt &first = entries[0].settings[i], &other = entries[rank].settings[i];
      if (other.hash != first.hash)
        raise_usage(fmt::format("Options::{} is {} on rank {} and {} on rank 0; it must be the same on all ranks",
                                settings[i].name, other.text.data(), rank, first.text.data()));
    }
}

void refuse_type_of_no_device(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries)
    if (entry.wanted != torch::ScalarType::Undefined &&
        std::ranges::find(entries, entry.wanted, &Entry::computed) == entries.end())
      raise_usage(fmt::format(
          "no device of the group computes in {} with libtorch {} and adds up in float32; take Precision::automatic or "
          "Precision::fp32",
          train::precision_name(entry.wanted), TORCH_VERSION));
}

}  // namespace

Candidate candidate_of(const Options& options, const ModuleView& module, torch::Device device) {
  Candidate mine{options, module.trained(), {}, device, torch::kFloat};
  std::ranges::reverse(mine.parameters);
  for (const auto& [name, tensor] : mine.parameters)
    mine.groups.push_back(options.without_decay && options.without_decay(name, tensor) ? 1 : 0);
  const auto type = mine.parameters.empty() ? torch::kFloat : mine.parameters[0].tensor.scalar_type();
  mine.compute_type = train::compute_type(precision_of(options.precision), device, type);
  return mine;
}

void check_options(comm::Communicator& communicator, const Candidate& mine) {
  const std::string fault = fault_of(mine, communicator.size());
  const auto settings = settings_of(mine);
  Entry entry{Excerpt(fault), {}, wanted_by_name(mine.options.precision), mine.compute_type};
  for (size_t i = 0; i < kSettings; ++i) entry.settings[i] = Excerpt(settings[i].value);
  const std::vector<Entry> entries = or_raise(train::gather_all(communicator, entry, train::label::kOptions));
  if (!fault.empty()) raise_usage(fault);
  for (size_t rank = 0; rank < entries.size(); ++rank)
    if (entries[rank].fault.text[0] != '\0')
      raise_usage(fmt::format("rank {}: {}", rank, entries[rank].fault.text.data()));
  refuse_difference(settings, entries);
  refuse_type_of_no_device(entries);
}

}  // namespace remuda::parallel

// How a run goes on from a checkpoint: whether that is damaged shows while it is loaded.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "train/checkpoints.h"
#include "train/device/random_state.h"
#include "train/missed_steps.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

using checkpoint::PieceName;
using checkpoint::text_of;

/// A value of Manifest::run; NaN where it is not there.
double number_of(const Json& run, const char* key) {
  const auto found = run.find(key);
  return found != run.end() && found->is_number() ? found->get<double>() : NAN;
}

/// Of the files that are this rank's to compare: what no rank may have to load, such as generators of more ranks than
/// there are.
void compare_own(checkpoint::Pieces& pieces, size_t rank, size_t ranks) {
  for (size_t file = rank; file < pieces.files(); file += ranks)
    for (const weights::TensorInfo& tensor : pieces.tensors(file))
      for (const char* kind : {"buffer/", "generator/", "own/"})
        if (tensor.name.starts_with(kind)) pieces.want_compared(file, tensor);
}

/// So that the weights of all are 1 together; what is none counts nothing.
std::vector<double> as_parts(std::vector<double> weights) {
  for (double& weight : weights)
    if (!(weight >= 0)) weight = 0;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 1 / double(weights.size());
  return weights;
}

}  // namespace

/// What is not there, or is out of range, is damage that no sum shows: somebody wrote it.
Result<Progress> Checkpoints::progress_of(const checkpoint::Manifest& manifest, const std::string& folder) const {
  const Json& run = manifest.run;
  const auto count = [&](const char* key) {
    const double value = number_of(run, key);
    return value >= 0 && value < 9e15 && value == std::floor(value) ? value : NAN;
  };
  Progress progress{.epoch_loss = number_of(run, "epoch_loss"),
                    .epoch_weight = number_of(run, "epoch_weight"),
                    .loss_scale = number_of(run, "loss_scale")};
  const auto nowhere = [&] {
    return usage_error(fmt::format("the manifest in {} does not say where the run stood", folder));
  };
  double whole = 0;
  for (const char* key : {"position", "steps", "skipped_steps", "finite_in_a_row", "optimizer_steps"})
    whole += count(key);
  if (std::isnan(whole + progress.epoch_loss + progress.epoch_weight + progress.loss_scale) ||
      progress.loss_scale <= 0 || count("steps") > 2147483647 || !run.contains("loss_per_epoch") ||
      !run["loss_per_epoch"].is_array())
    return nowhere();
  progress.position = uint64_t(count("position"));
  progress.steps = int(count("steps"));
  progress.skipped_steps = int(std::min(count("skipped_steps"), count("steps")));
  progress.finite_in_a_row = int(std::min(count("finite_in_a_row"), count("steps")));
  progress.optimizer_steps = int64_t(count("optimizer_steps"));
  for (const Json& missed : run.value("missed_steps", Json::array())) {
    const double steps = missed.is_number() ? missed.get<double>() : NAN;
    if (!(steps >= 0 && steps <= double(progress.optimizer_steps))) return nowhere();
    progress.missed_steps.push_back(int64_t(steps));
  }
  if (!progress.missed_steps.empty() && progress.missed_steps.size() != model_.parameters().size()) return nowhere();
  for (const Json& loss : run["loss_per_epoch"])
    progress.loss_per_epoch.push_back(loss.is_number() ? loss.get<double>() : NAN);
  return progress;
}

/// The same model, data and optimizer: else the parts would not fit, or the run would not be the same one.
Result<void> Checkpoints::check_fits(const checkpoint::Manifest& manifest, const std::string& folder,
                                     const FlatParameters& flat) const {
  const std::vector<checkpoint::ModelTensor> mine = model_tensors(flat);
  if (mine != manifest.tensors) {
    const auto [here, there] = std::ranges::mismatch(mine, manifest.tensors);
    const std::string name = here != mine.end() ? here->name : there->name;
    return usage_error(fmt::format("{} is of another model: they differ first in {}", folder, printable(name)));
  }
  const job::Compression kept = compression(), here = job_.train.compression;
  if (kept != job::Compression::none && here != kept && here != job::Compression::automatic)
    return usage_error(fmt::format("{} is of a run {}; give train.compression = \"{}\" as there", folder,
                                   kept == job::Compression::one_bit
                                       ? "whose variance was frozen"
                                       : "whose hosts owe each other a part of the gradients",
                                   job::name_of(kept)));
  const Json wanted = run_of({});
  for (const char* key : {"optimizer", "momentum", "average", "global_batch", "seed", "samples"}) {
    const Json there = manifest.run.contains(key) ? manifest.run[key] : Json();
    if (there != wanted[key])
      return usage_error(fmt::format("{} is of a run with another {}: {} there, {} here", folder,
                                     key == std::string("samples") ? "number of samples" : "train." + std::string(key),
                                     printable(to_line(there)), to_line(wanted[key])));
  }
  return {};
}

Result<void> Checkpoints::load_owned(Arrivals& arrivals, OwnedState& state, const FlatParameters& flat) {
  const std::vector<std::string> names = names_of(flat);
  for (const Owned& own : state.owned()) {
    const std::string& name = names[own.parameter];
    REMUDA_TRY(arrivals.want("parameter", name, own.first, own.value));
    for (size_t i = 0; i < own.states.size(); ++i)
      REMUDA_TRY(arrivals.want(fmt::format("state{}", i), name, own.first, own.states[i]));
    if (own.average.defined()) REMUDA_TRY(arrivals.want("average", name, own.first, own.average));
  }
  return {};
}

/// Of each rank that wrote: the samples that it had seen since the ranks last had the same buffers; NaN if unknown.
Result<std::vector<double>> Checkpoints::samples_seen(checkpoint::Pieces& pieces) {
  const std::string name = text_of({"own", "samples_since_average", 0});
  std::vector<double> samples(pieces.files(), NAN);
  for (size_t file = 0; file < samples.size(); ++file) {
    const weights::TensorInfo* info = pieces.find(file, name);
    if (info && info->type == weights::DType::f64 && info->bytes() == sizeof(double))
      pieces.want(file, *info, std::as_writable_bytes(std::span(&samples[file], 1)));
  }
  REMUDA_TRY(pieces.fetch());
  return samples;
}

/// This rank's own; where other ranks wrote them, their mean by what each has seen: they are statistics of that.
Result<void> Checkpoints::load_buffers(Arrivals& arrivals, const FlatParameters& flat,
                                       const std::vector<double>& weights) {
  const checkpoint::Pieces& pieces = arrivals.pieces();
  const bool same = pieces.files() == size_t(communicator_.size());
  const auto most = size_t(std::ranges::max_element(weights) - weights.begin());  // of what is no mean
  for (const NamedTensor& one : untrained(flat)) {
    const auto type = file_type(one.tensor.scalar_type());
    if (!type || one.tensor.numel() == 0) continue;
    const bool mean = !same && one.tensor.is_floating_point();
    std::vector<Arrivals::Part> parts;
    for (size_t rank = 0; rank < (mean ? pieces.files() : 1); ++rank) {
      const size_t file = same ? size_t(communicator_.rank()) : mean ? rank : most;
      const weights::TensorInfo* info = pieces.find(file, text_of({"buffer", one.name, 0}));
      if (!info || info->type != *type || info->bytes() != one.tensor.nbytes())
        return usage_error(fmt::format("{} lacks the buffer {}", pieces.path(file), printable(one.name)));
      parts.push_back({file, info, weights[file]});
    }
    REMUDA_TRY(arrivals.want(parts, one.tensor));
  }
  return {};
}

/// This rank's, where as many ranks wrote them; else undefined.
torch::Tensor Checkpoints::want_generator(checkpoint::Pieces& pieces, const std::string& kind) const {
  const auto rank = size_t(communicator_.rank());
  const weights::TensorInfo* info =
      pieces.files() == size_t(communicator_.size()) ? pieces.find(rank, text_of({"generator", kind, 0})) : nullptr;
  if (!info || info->type != weights::DType::u8) return {};
  torch::Tensor values = torch::empty({int64_t(info->bytes())}, torch::kByte);
  pieces.want(rank, *info, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()});
  return values;
}

Result<Checkpoints::Loaded> Checkpoints::load(checkpoint::Pieces& pieces, OwnedState& state,
                                              const FlatParameters& flat) {
  const torch::NoGradGuard no_grad;
  REMUDA_TRY(check_fits(found_->manifest, found_->at.folder, flat));
  Loaded loaded;
  REMUDA_ASSIGN(loaded.progress, progress_of(found_->manifest, found_->at.folder));
  REMUDA_ASSIGN(const std::vector<double> samples, samples_seen(pieces));
  const auto rank = size_t(communicator_.rank()), ranks = size_t(communicator_.size());
  if (pieces.files() == ranks && !std::isnan(samples[rank])) loaded.progress.samples_since_average = samples[rank];
  Arrivals arrivals(pieces);
  REMUDA_TRY(load_owned(arrivals, state, flat));
  REMUDA_TRY(load_buffers(arrivals, flat, as_parts(samples)));
  loaded.host = want_generator(pieces, "host");
  loaded.own = want_generator(pieces, c10::DeviceTypeName(device_.type(), true));
  compare_own(pieces, rank, ranks);
  REMUDA_TRY(arrivals.fetch());
  return loaded;
}

/// Nothing where what was found is damaged: what was loaded of it does not count, and the one before it is found.
Result<std::optional<Progress>> Checkpoints::resume(OwnedState& state, const FlatParameters& flat) {
  if (!found_) return std::nullopt;
  const double start = monotonic_s();
  auto pieces = checkpoint::Pieces::open(found_->at.folder, found_->manifest);
  auto loaded = pieces ? load(*pieces, state, flat) : tl::unexpected(pieces.error());
  const Seen::Verdict verdict = loaded ? Seen::whole : !pieces || pieces->is_damaged() ? Seen::damaged : Seen::unfit;
  REMUDA_ASSIGN(const std::vector<Seen> all, exchange(verdict, loaded ? "" : loaded.error().message));
  if (verdict == Seen::unfit) return tl::unexpected(loaded.error());
  if (const auto unfit = std::ranges::find(all, Seen::unfit, &Seen::verdict); unfit != all.end())
    return because_of(int(unfit - all.begin()),
                      fmt::format("rank {} cannot go on from {}", unfit - all.begin(), found_->at.folder));
  if (const auto bad = std::ranges::find(all, Seen::damaged, &Seen::verdict); bad != all.end()) {
    passed_over_.emplace_back(bad->why.data());
    REMUDA_TRY(take_next());
    report_.load_s += monotonic_s() - start;
    return std::nullopt;
  }
  const RandomState now(device_);
  if (loaded->host.defined() && loaded->host.numel() == now.host().numel() &&
      loaded->own.defined() == now.own().defined())
    RandomState(device_, loaded->host, loaded->own).restore();
  set_missed(state, flat, model_, loaded->progress.missed_steps);
  REMUDA_TRY(state.resume(loaded->progress.optimizer_steps));
  report_.load_s += monotonic_s() - start;
  go_on_from(loaded->progress.steps);
  return std::move(loaded->progress);
}

void Checkpoints::go_on_from(int steps) {
  report_.resumed_from = last_step_ = steps;
  const auto note = [&](const std::string& text) {
    if (is_first()) events_.send({{"event", "note"}, {"text", text}});
  };
  for (const std::string& why : passed_over_) note(why + "; the checkpoint before it is taken");
  note(fmt::format("goes on after step {}, from {}", steps, found_->at.folder));
  steps_.push_back(steps);
  found_.reset();
}

Result<std::optional<Progress>> Checkpoints::resume_again(OwnedState& state, const FlatParameters& flat) {
  REMUDA_TRY(find([this](int64_t step) { return std::ranges::find(steps_, step) != steps_.end(); }));
  std::optional<Progress> progress;
  while (found_) {
    REMUDA_ASSIGN(progress, resume(state, flat));
  }
  return progress;
}

}  // namespace remuda::train

// How a run goes on from a checkpoint.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"
#include "train/agreement.h"
#include "train/checkpoints.h"
#include "train/device/random_state.h"
#include "train/labels.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

using checkpoint::PieceName;
using checkpoint::text_of;

constexpr int64_t kNoCheckpoint = -1, kCannotRead = -2;

/// A value of Manifest::run; NaN where it is not there.
double number_of(const Json& run, const char* key) {
  const auto found = run.find(key);
  return found != run.end() && found->is_number() ? found->get<double>() : NAN;
}

}  // namespace

/// Collective. The step of the checkpoint to go on from, or kNoCheckpoint.
Result<int64_t> Checkpoints::choose() {
  int64_t step = kNoCheckpoint;
  Result<void> read;
  if (is_first()) {
    auto newest = checkpoint::newest_whole(job_.checkpoint.folder);
    if (!newest) read = tl::unexpected(newest.error());
    step = !newest ? kCannotRead : newest->found ? newest->found->at.step : kNoCheckpoint;
    if (newest)
      for (const std::string& why : newest->passed_over)
        events_.send({{"event", "note"}, {"text", why + "; the checkpoint before it is taken"}});
  }
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0, label::kCheckpoint));
  if (!read) return tl::unexpected(read.error());
  if (step == kCannotRead)
    return remuda::failed(fmt::format("rank 0 cannot read the checkpoints in {}", job_.checkpoint.folder));
  return step;
}

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
  double whole = 0;
  for (const char* key : {"position", "steps", "skipped_steps", "finite_in_a_row", "optimizer_steps"})
    whole += count(key);
  if (std::isnan(whole + progress.epoch_loss + progress.epoch_weight + progress.loss_scale) ||
      count("steps") > 2147483647 || !run.contains("loss_per_epoch") || !run["loss_per_epoch"].is_array())
    return usage_error(fmt::format("the manifest in {} does not say where the run stood", folder));
  progress.position = uint64_t(count("position"));
  progress.steps = int(count("steps"));
  progress.skipped_steps = int(std::min(count("skipped_steps"), count("steps")));
  progress.finite_in_a_row = int(std::min(count("finite_in_a_row"), count("steps")));
  progress.optimizer_steps = int64_t(count("optimizer_steps"));
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
  const Json wanted = run_of({});
  for (const char* key : {"optimizer", "momentum", "average", "seed", "samples"}) {
    const Json there = manifest.run.contains(key) ? manifest.run[key] : Json();
    if (there != wanted[key])
      return usage_error(fmt::format("{} is of a run with another {}: {} there, {} here", folder,
                                     key == std::string("samples") ? "number of samples" : "train." + std::string(key),
                                     printable(to_line(there)), to_line(wanted[key])));
  }
  return {};
}

Result<void> Checkpoints::load_owned(const checkpoint::Pieces& pieces, ShardedOptimizer& optimizer,
                                     const FlatParameters& flat) {
  const std::vector<std::string> names = names_of(flat);
  const auto load = [&](const std::string& kind, const std::string& name, size_t first,
                        torch::Tensor to) -> Result<void> {
    const torch::Tensor values = torch::empty(to.sizes(), to.options().device(torch::kCPU));
    REMUDA_TRY(pieces.read(kind, name, file_type(to.scalar_type()).value(), first,
                           {static_cast<std::byte*>(values.data_ptr()), values.nbytes()}));
    to.copy_(values);
    return {};
  };
  for (const ShardedOptimizer::Owned& own : optimizer.owned()) {
    const std::string& name = names[own.parameter];
    REMUDA_TRY(load("parameter", name, own.first, own.value));
    for (size_t i = 0; i < own.states.size(); ++i)
      REMUDA_TRY(load(fmt::format("state{}", i), name, own.first, own.states[i]));
    if (own.average.defined()) REMUDA_TRY(load("average", name, own.first, own.average));
  }
  return {};
}

/// This rank's own; where other ranks wrote them, their mean: they are statistics of what each has seen.
Result<void> Checkpoints::load_buffers(const checkpoint::Pieces& pieces, const FlatParameters& flat) {
  const size_t ranks = pieces.files();
  const bool same = ranks == size_t(communicator_.size());
  for (const NamedTensor& one : untrained(flat)) {
    const std::string name = text_of({"buffer", one.name, 0});
    const auto type = file_type(one.tensor.scalar_type());
    if (!type || one.tensor.numel() == 0) continue;
    const bool mean = !same && one.tensor.is_floating_point();
    torch::Tensor sum;
    for (size_t rank = 0; rank < (mean ? ranks : 1); ++rank) {
      const size_t file = same ? size_t(communicator_.rank()) : rank;
      const weights::TensorInfo* info = pieces.find(file, name);
      const torch::Tensor values = torch::empty(one.tensor.sizes(), one.tensor.options().device(torch::kCPU));
      if (!info || info->type != *type || info->bytes() != values.nbytes())
        return usage_error(fmt::format("{} lacks the buffer {}", pieces.file(file).path(), printable(one.name)));
      REMUDA_TRY(pieces.file(file).read(*info, 0, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()}));
      sum = sum.defined() ? sum + values : values;
    }
    torch::Tensor(one.tensor).copy_(mean ? sum / double(ranks) : sum);
  }
  return {};
}

/// Generators and sums of this rank, where as many ranks wrote them.
Result<void> Checkpoints::load_own(const checkpoint::Pieces& pieces, Progress& progress) {
  const auto rank = size_t(communicator_.rank());
  if (pieces.files() != size_t(communicator_.size())) return {};
  const auto read = [&](const PieceName& name, torch::ScalarType type) -> Result<torch::Tensor> {
    const weights::TensorInfo* info = pieces.find(rank, text_of(name));
    if (!info || info->type != file_type(type)) return torch::Tensor();
    torch::Tensor values = torch::empty({int64_t(info->bytes() / weights::size_of(info->type))}, type);
    REMUDA_TRY(pieces.file(rank).read(*info, 0, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()}));
    return values;
  };
  REMUDA_ASSIGN(const torch::Tensor samples, read({"own", "samples_since_average", 0}, torch::kDouble));
  if (samples.defined() && samples.numel() == 1) progress.samples_since_average = samples.item<double>();
  REMUDA_ASSIGN(const torch::Tensor host, read({"generator", "host", 0}, torch::kByte));
  REMUDA_ASSIGN(const torch::Tensor own,
                read({"generator", c10::DeviceTypeName(device_.type(), true), 0}, torch::kByte));
  const RandomState now(device_);
  if (host.defined() && host.numel() == now.host().numel() && own.defined() == now.own().defined())
    RandomState(device_, host, own).restore();
  return {};
}

Result<Progress> Checkpoints::load(const checkpoint::Stored& stored, ShardedOptimizer& optimizer,
                                   const FlatParameters& flat) {
  const torch::NoGradGuard no_grad;
  REMUDA_ASSIGN(const checkpoint::Manifest manifest, checkpoint::read_manifest(stored));
  REMUDA_TRY(check_fits(manifest, stored.folder, flat));
  REMUDA_ASSIGN(Progress progress, progress_of(manifest, stored.folder));
  REMUDA_ASSIGN(const checkpoint::Pieces pieces, checkpoint::Pieces::open(stored.folder, manifest));
  REMUDA_TRY(load_owned(pieces, optimizer, flat));
  REMUDA_TRY(load_buffers(pieces, flat));
  REMUDA_TRY(load_own(pieces, progress));
  return progress;
}

Result<std::optional<Progress>> Checkpoints::resume(ShardedOptimizer& optimizer, const FlatParameters& flat) {
  if (!active() || job_.checkpoint.resume == job::Switch::off) return std::nullopt;
  REMUDA_ASSIGN(const int64_t step, choose());
  if (step == kNoCheckpoint) return std::nullopt;
  const checkpoint::Stored stored = checkpoint::place_of(job_.checkpoint.folder, step);
  auto progress = load(stored, optimizer, flat);
  uint64_t good = progress ? 1 : 0;
  REMUDA_ASSIGN(const std::vector<uint64_t> all, gather_all(communicator_, good, label::kCheckpoint));
  if (!progress) return tl::unexpected(progress.error());
  const auto bad = std::ranges::find(all, uint64_t{0});
  if (bad != all.end())
    return remuda::failed(
        fmt::format("rank {} cannot go on from {}; all hosts must have that folder", bad - all.begin(), stored.folder));
  REMUDA_TRY(optimizer.resume(progress->optimizer_steps));
  resumed_from_ = last_step_ = progress->steps;
  if (is_first())
    events_.send({{"event", "note"}, {"text", fmt::format("goes on after step {}, from {}", step, stored.folder)}});
  return std::move(*progress);
}

}  // namespace remuda::train

// How a run goes on from a checkpoint.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "base/clock.h"
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

/// Of a rank whose error is the other's: that one says what is wrong.
tl::unexpected<Error> because_of(int rank, std::string why) {
  return tl::unexpected(Error{ErrorKind::lost_peer, std::move(why), rank});
}

/// That each rank has read what it needs of it.
Result<void> check_all_read(const std::vector<uint64_t>& good, const checkpoint::Stored& at) {
  const auto bad = std::ranges::find(good, uint64_t{0});
  if (bad == good.end()) return {};
  const auto rank = int(bad - good.begin());
  return because_of(rank, fmt::format("rank {} cannot go on from {}", rank, at.folder));
}

}  // namespace

/// Claims the folder. The checkpoints to choose from, in the order of their steps.
Result<std::vector<checkpoint::Stored>> Checkpoints::candidates(const Wanted& wanted) {
  const std::string& folder = job_.checkpoint.folder;
  if (!claim_ && !is_claimed_) {
    Result<checkpoint::Claim> claim = checkpoint::Claim::take(folder);
    if (claim) claim_.emplace(std::move(*claim));
    if (!claim && !goes_on_) return tl::unexpected(claim.error());  // else it is that of the rank that was lost
  }
  if (!wanted) return std::vector<checkpoint::Stored>();
  REMUDA_ASSIGN(std::vector<checkpoint::Stored> stored, checkpoint::stored_in(folder));
  std::erase_if(stored, [&](const checkpoint::Stored& one) { return !wanted(one.step); });
  return stored;
}

/// Collective. Each rank reads some of its files.
Result<Checkpoints::Verified> Checkpoints::verify_together(const checkpoint::Stored& at) {
  struct Seen {
    enum : uint64_t { whole, damaged, elsewhere } how = whole;
    std::array<char, 1016> why{};
  } mine;
  const auto size = size_t(communicator_.size());
  auto manifest = checkpoint::verify(at, {.number = size_t(communicator_.rank()), .all = size});
  if (!manifest) {
    mine.how = checkpoint::read_manifest(at) ? Seen::damaged : Seen::elsewhere;
    manifest.error().message.copy(mine.why.data(), mine.why.size() - 1);
  }
  REMUDA_ASSIGN(const std::vector<Seen> all, gather_all(communicator_, mine, label::kCheckpoint));
  const auto lacks = std::ranges::find(all, Seen::elsewhere, &Seen::how);
  if (lacks != all.end() && all[0].how != Seen::elsewhere) {
    if (mine.how == Seen::elsewhere) return usage_error(manifest.error().message + "; all hosts must have that folder");
    return because_of(int(lacks - all.begin()),
                      fmt::format("rank {} does not find {}", lacks - all.begin(), at.folder));
  }
  const auto bad = std::ranges::find_if(all, [](const Seen& one) { return one.how != Seen::whole; });
  if (bad != all.end()) return Verified{.wrong = bad->why.data()};
  return Verified{.manifest = std::move(*manifest)};
}

/// Collective. The newest of the checkpoints that is whole; nothing where there are none, or none are `wanted`.
Result<std::optional<Checkpoints::Found>> Checkpoints::choose(const Wanted& wanted) {
  const std::string& folder = job_.checkpoint.folder;
  const auto stored = is_first() ? candidates(wanted) : std::vector<checkpoint::Stored>();
  std::vector<checkpoint::Stored> left = stored.value_or(std::vector<checkpoint::Stored>());
  std::vector<std::string> passed_over;
  for (;;) {
    int64_t step = !left.empty() ? left.back().step : stored && passed_over.empty() ? kNoCheckpoint : kCannotRead;
    REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0, label::kCheckpoint));
    if (!stored) return tl::unexpected(stored.error());
    if (step == kNoCheckpoint) return std::nullopt;
    if (step == kCannotRead && !is_first())
      return because_of(0, fmt::format("rank 0 cannot use the checkpoints in {}", folder));
    if (step == kCannotRead)
      return usage_error(fmt::format("no checkpoint in {} is whole: {}; a run that begins needs another folder", folder,
                                     passed_over.front()));
    const checkpoint::Stored at = checkpoint::place_of(folder, step);
    REMUDA_ASSIGN(Verified verified, verify_together(at));
    if (verified.wrong.empty()) {
      for (const std::string& why : passed_over)
        if (is_first()) events_.send({{"event", "note"}, {"text", why + "; the checkpoint before it is taken"}});
      return Found{at, std::move(verified.manifest), {}};
    }
    passed_over.push_back(std::move(verified.wrong));
    if (is_first()) left.pop_back();
  }
}

Result<void> Checkpoints::open() {
  return find(job_.checkpoint.resume == job::Switch::on ? [](int64_t) { return true; } : Wanted());
}

Result<void> Checkpoints::open_again(std::vector<int64_t> steps) {
  steps_ = std::move(steps);
  goes_on_ = true;
  REMUDA_TRY(find({}));
  REMUDA_ASSIGN(last_step_, newest_of_own());
  return {};
}

/// Collective. The newest step of this run that is kept: of the last one, its manifest may be missing, as a rank may
/// have been lost before it was written. 0: none.
Result<int> Checkpoints::newest_of_own() {
  int step = 0;
  if (!active()) return step;
  const auto stored = is_first() ? checkpoint::stored_in(job_.checkpoint.folder) : std::vector<checkpoint::Stored>();
  for (const checkpoint::Stored& one : stored.value_or(std::vector<checkpoint::Stored>()))
    if (std::ranges::find(steps_, one.step) != steps_.end()) step = int(one.step);
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0, label::kCheckpoint));
  return step;
}

Result<void> Checkpoints::find(const Wanted& wanted) {
  if (!active()) return {};
  const double start = monotonic_s();
  REMUDA_ASSIGN(found_, choose(wanted));
  if (!found_) return {};
  const Json& run = found_->manifest.run;
  if (const auto kept = run.find("balance"); kept != run.end()) found_->balance = parse_kept_balance(*kept);
  report_.load_s = monotonic_s() - start;
  return {};
}

job::Compression Checkpoints::compression() const {
  const Json kept = found_ ? found_->manifest.run.value("compressed", Json()) : Json();
  if (kept == true) return job::Compression::one_bit;
  return kept == job::name_of(job::Compression::powersgd) ? job::Compression::powersgd : job::Compression::none;
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
      progress.loss_scale <= 0 || count("steps") > 2147483647 || !run.contains("loss_per_epoch") ||
      !run["loss_per_epoch"].is_array())
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

Result<void> Checkpoints::load_owned(const checkpoint::Pieces& pieces, OwnedState& state, const FlatParameters& flat) {
  const std::vector<std::string> names = names_of(flat);
  const auto load = [&](const std::string& kind, const std::string& name, size_t first,
                        torch::Tensor to) -> Result<void> {
    const bool is_there = to.is_cpu() && to.is_contiguous();
    const torch::Tensor values = is_there ? to : torch::empty(to.sizes(), to.options().device(torch::kCPU));
    REMUDA_TRY(pieces.read(kind, name, file_type(to.scalar_type()).value(), first,
                           {static_cast<std::byte*>(values.data_ptr()), values.nbytes()}));
    if (!is_there) to.copy_(values);
    return {};
  };
  for (const Owned& own : state.owned()) {
    const std::string& name = names[own.parameter];
    REMUDA_TRY(load("parameter", name, own.first, own.value));
    for (size_t i = 0; i < own.states.size(); ++i)
      REMUDA_TRY(load(fmt::format("state{}", i), name, own.first, own.states[i]));
    if (own.average.defined()) REMUDA_TRY(load("average", name, own.first, own.average));
  }
  return {};
}

/// How much each rank's buffers count: the samples that it has seen since the ranks last had the same.
Result<std::vector<double>> Checkpoints::buffer_weights(const checkpoint::Pieces& pieces) {
  const std::string name = text_of({"own", "samples_since_average", 0});
  std::vector<double> weights(pieces.files());
  for (size_t file = 0; file < weights.size(); ++file) {
    const weights::TensorInfo* info = pieces.find(file, name);
    if (info && info->type == weights::DType::f64 && info->bytes() == sizeof(double))
      REMUDA_TRY(pieces.file(file).read(*info, 0, std::as_writable_bytes(std::span(&weights[file], 1))));
    if (!(weights[file] >= 0)) weights[file] = 0;
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 1 / double(weights.size());
  return weights;
}

/// This rank's own; where other ranks wrote them, their mean: they are statistics of what each has seen.
Result<void> Checkpoints::load_buffers(const checkpoint::Pieces& pieces, const FlatParameters& flat) {
  const bool same = pieces.files() == size_t(communicator_.size());
  REMUDA_ASSIGN(const std::vector<double> weights, buffer_weights(pieces));
  for (const NamedTensor& one : untrained(flat)) {
    const std::string name = text_of({"buffer", one.name, 0});
    const auto type = file_type(one.tensor.scalar_type());
    if (!type || one.tensor.numel() == 0) continue;
    const bool mean = !same && one.tensor.is_floating_point();
    torch::Tensor sum;
    for (size_t rank = 0; rank < (mean ? pieces.files() : 1); ++rank) {
      const size_t file = same ? size_t(communicator_.rank()) : rank;
      const weights::TensorInfo* info = pieces.find(file, name);
      const torch::Tensor values = torch::empty(one.tensor.sizes(), one.tensor.options().device(torch::kCPU));
      if (!info || info->type != *type || info->bytes() != values.nbytes())
        return usage_error(fmt::format("{} lacks the buffer {}", pieces.file(file).path(), printable(one.name)));
      REMUDA_TRY(pieces.file(file).read(*info, 0, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()}));
      const torch::Tensor part = mean ? values * weights[rank] : values;
      sum = sum.defined() ? sum + part : part;
    }
    torch::Tensor(one.tensor).copy_(sum);
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

Result<Progress> Checkpoints::load(OwnedState& state, const FlatParameters& flat) {
  const torch::NoGradGuard no_grad;
  const auto& [at, manifest, balance] = *found_;
  REMUDA_TRY(check_fits(manifest, at.folder, flat));
  REMUDA_ASSIGN(Progress progress, progress_of(manifest, at.folder));
  REMUDA_ASSIGN(const checkpoint::Pieces pieces, checkpoint::Pieces::open(at.folder, manifest));
  REMUDA_TRY(load_owned(pieces, state, flat));
  REMUDA_TRY(load_buffers(pieces, flat));
  REMUDA_TRY(load_own(pieces, progress));
  return progress;
}

Result<std::optional<Progress>> Checkpoints::resume(OwnedState& state, const FlatParameters& flat) {
  if (!found_) return std::nullopt;
  const double start = monotonic_s();
  auto progress = load(state, flat);
  REMUDA_ASSIGN(const std::vector<uint64_t> all,
                gather_all(communicator_, uint64_t(progress ? 1 : 0), label::kCheckpoint));
  if (!progress) return tl::unexpected(progress.error());
  REMUDA_TRY(check_all_read(all, found_->at));
  REMUDA_TRY(state.resume(progress->optimizer_steps));
  report_.resumed_from = last_step_ = progress->steps;
  report_.load_s += monotonic_s() - start;
  if (is_first())
    events_.send({{"event", "note"},
                  {"text", fmt::format("goes on after step {}, from {}", progress->steps, found_->at.folder)}});
  steps_.push_back(progress->steps);
  found_.reset();
  return std::move(*progress);
}

Result<std::optional<Progress>> Checkpoints::resume_again(OwnedState& state, const FlatParameters& flat) {
  REMUDA_TRY(find([this](int64_t step) { return std::ranges::find(steps_, step) != steps_.end(); }));
  return resume(state, flat);
}

}  // namespace remuda::train

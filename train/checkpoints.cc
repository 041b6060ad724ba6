#include "train/checkpoints.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/version.h"
#include "train/agreement.h"
#include "train/device/random_state.h"
#include "train/labels.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

using checkpoint::PieceName;
using checkpoint::text_of;
using weights::DType;

/// A piece on its way to the file.
struct Kept {
  std::string name;
  DType type;
  torch::Tensor values;
};

struct RegisteredImage {
  checkpoint::Image image;
  std::shared_ptr<void> known;  ///< to the driver; ends before the memory does
};

/// The rank's file as it is now; in the memory of the last one, where that has the same tensors.
Result<std::shared_ptr<checkpoint::Image>> copy_of(const std::vector<Kept>& pieces, const HostCopies& host,
                                                   std::shared_ptr<checkpoint::Image> image) {
  weights::Header header;
  std::unordered_map<std::string, torch::Tensor> by_name;
  for (const Kept& piece : pieces) {
    header.tensors.push_back({.name = piece.name, .type = piece.type, .shape = {uint64_t(piece.values.numel())}});
    by_name.emplace(piece.name, piece.values.detach());
  }
  weights::place_tensors(header);
  if (!image || image->tensors() != header.tensors) {
    image.reset();
    REMUDA_ASSIGN(checkpoint::Image made, checkpoint::Image::create(std::move(header)));
    auto registered = std::make_shared<RegisteredImage>(RegisteredImage{std::move(made), nullptr});
    registered->known = host.known(registered->image.bytes());
    image = std::shared_ptr<checkpoint::Image>(registered, &registered->image);
  }
  for (const weights::TensorInfo& tensor : image->tensors()) {
    const torch::Tensor& values = by_name.at(tensor.name);
    if (values.is_cpu() && values.is_contiguous())
      image->fill(tensor, {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
    else
      host.copy(torch::from_blob(image->bytes_of(tensor).data(), values.sizes(), values.options().device(torch::kCPU)),
                values);
  }
  REMUDA_TRY(host.finish("the copy of its state for a checkpoint"));
  return image;
}

/// Where the training computes on the CPU, whatever the writing takes is taken from it. To copy the state is a measure
/// of that: to write it costs about as much again, its sums most of that, and the memory's bandwidth besides. So it is
/// written in a time of which the copy is 1/100; but in no more than half of the time between two checkpoints.
constexpr double kSpread = 100;

/// For a thread beside the training: on a CPU it would otherwise take the time of the steps.
void give_way() { ::setpriority(PRIO_PROCESS, 0, 19); }

/// What each rank says of its file at the end, as raw bytes.
struct Written {
  uint64_t bytes = 0, sums = 0;  ///< so many sums
  uint64_t failed = 0;
};

/// Collective. The sums of all files, where each rank has as many as it has said.
Result<std::vector<std::vector<uint64_t>>> gather_sums(comm::Communicator& communicator, std::vector<uint64_t> mine,
                                                       const std::vector<Written>& said) {
  const uint64_t most = std::ranges::max(said, {}, &Written::sums).sums;
  if (most == 0) return std::vector<std::vector<uint64_t>>(said.size());
  mine.resize(most);
  std::vector<uint64_t> together(most * said.size());
  REMUDA_TRY(communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(together)),
                                     label::kCheckpoint));
  std::vector<std::vector<uint64_t>> all;
  for (auto first = together.begin(); const Written& one : said) {
    all.emplace_back(first, first + int64_t(one.sums));
    first += int64_t(most);
  }
  return all;
}

/// The first of them had no name.
Json compressed_json(job::Compression compression) {
  if (compression == job::Compression::powersgd) return job::name_of(compression);
  return compression == job::Compression::one_bit;
}

}  // namespace

struct Checkpoints::Pending {
  checkpoint::Stored stored;
  Json run;
  std::vector<checkpoint::ModelTensor> tensors;
  double began_s = 0;
  uint64_t bytes = 0;  ///< of this rank's file
  bool beside = true;  ///< the training goes on
  std::shared_ptr<checkpoint::Haste> haste = std::make_shared<checkpoint::Haste>();
  std::future<Result<checkpoint::StoredFile>> file;

  bool is_written(double within_s = 0) const {
    return file.wait_for(std::chrono::duration<double>(within_s)) == std::future_status::ready;
  }
};

Checkpoints::Checkpoints(const job::TrainJob& job, comm::Communicator& communicator, const Events& events, Model& model,
                         const HostCopies& host, uint64_t samples, bool is_claimed, double pause_s)
    : job_(job),
      communicator_(communicator),
      events_(events),
      model_(model),
      host_(host),
      device_(host.device()),
      samples_(samples),
      is_claimed_(is_claimed),
      pause_s_(pause_s),
      last_s_(monotonic_s()) {}

// What is being written can be no checkpoint any more; who is to notice a loss must not be kept by it.
Checkpoints::~Checkpoints() {
  if (pending_) pending_->haste->given_up = true;
}

std::vector<std::string> Checkpoints::names_of(const FlatParameters& flat) const {
  return train::names_of(model_, flat.parameters());
}

std::vector<NamedTensor> Checkpoints::untrained(const FlatParameters& flat) const {
  std::unordered_set<const at::TensorImpl*> known;
  for (const torch::Tensor& parameter : flat.parameters()) known.insert(parameter.unsafeGetTensorImpl());
  std::vector<NamedTensor> rest;
  for (const NamedTensor& one : named_tensors(model_))
    if (known.insert(one.tensor.unsafeGetTensorImpl()).second) rest.push_back(one);
  return rest;
}

std::vector<checkpoint::ModelTensor> Checkpoints::model_tensors(const FlatParameters& flat) const {
  std::vector<checkpoint::ModelTensor> tensors;
  const auto add = [&](const std::string& name, const torch::Tensor& tensor, bool is_buffer) {
    tensors.push_back({name,
                       file_type(tensor.scalar_type()).value_or(DType::u8),
                       {tensor.sizes().begin(), tensor.sizes().end()},
                       is_buffer});
  };
  const std::vector<std::string> names = names_of(flat);
  for (size_t i = 0; i < names.size(); ++i) add(names[i], flat.parameters()[i], false);
  for (const NamedTensor& one : untrained(flat)) add(one.name, one.tensor, true);
  std::ranges::sort(tensors, {}, &checkpoint::ModelTensor::name);  // the order of gradients may be another one
  return tensors;
}

Json Checkpoints::run_of(const Progress& progress) const {
  return {{"position", progress.position},
          {"steps", progress.steps},
          {"skipped_steps", progress.skipped_steps},
          {"epoch_loss", progress.epoch_loss},
          {"epoch_weight", progress.epoch_weight},
          {"loss_per_epoch", progress.loss_per_epoch},
          {"loss_scale", progress.loss_scale},
          {"finite_in_a_row", progress.finite_in_a_row},
          {"optimizer_steps", progress.optimizer_steps},
          {"missed_steps", progress.missed_steps},
          {"compressed", compressed_json(progress.compression)},
          {"balance", to_json(progress.balance)},
          {"global_batch", job_.train.global_batch},
          {"optimizer", job_.train.optimizer == job::Optimizer::adamw ? "adamw" : "sgd"},
          {"momentum", job_.train.momentum},
          {"average", job_.train.average},
          {"seed", job_.train.seed},
          {"samples", samples_},
          {"tied", further_names(named_tensors(model_))}};
}

bool Checkpoints::is_due(int steps) const {
  const job::CheckpointSpec& spec = job_.checkpoint;
  if (spec.every_steps > 0 && steps - last_step_ >= spec.every_steps) return true;
  return spec.every_minutes > 0 && monotonic_s() - last_s_ >= 60 * spec.every_minutes;
}

unsigned Checkpoints::status(int steps) {
  if (!active()) return 0;
  if (pending_) return pending_->is_written() ? unsigned(kStored) : 0;
  return is_first() && !published_.valid() && is_due(steps + 1) ? unsigned(kCheckpoint) : 0;
}

bool Checkpoints::meets_after(const StepTotals& totals) const {
  return pending_ && std::ranges::all_of(totals.status, [](unsigned bits) { return (bits & kStored) != 0; });
}

Result<void> Checkpoints::after_step(const StepTotals& totals, OwnedState& state, const FlatParameters& flat,
                                     const std::function<Progress()>& progress) {
  if (!active()) return {};
  const double start = monotonic_s();
  if (published_.valid() && published_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    report_.background_s += take_published();
  if (meets_after(totals)) REMUDA_TRY(conclude());
  if (!pending_ && (totals.status[0] & kCheckpoint) && state.steps() > 0)
    REMUDA_TRY(begin(state, flat, progress(), true));
  report_.held_s += monotonic_s() - start;
  return {};
}

/// Collective. Copies what this rank keeps, and writes it on a thread; `beside` the training, or with nothing else to
/// do.
Result<void> Checkpoints::begin(OwnedState& state, const FlatParameters& flat, const Progress& progress, bool beside) {
  REMUDA_TRY(state.settle());
  pending_ = std::make_unique<Pending>();
  pending_->beside = beside;
  const double since_last_s = monotonic_s() - last_s_;
  pending_->began_s = last_s_ = monotonic_s();
  last_step_ = progress.steps;
  std::vector<Kept> pieces;
  const auto add = [&](const std::string& kind, const std::string& name, size_t first, const torch::Tensor& values) {
    const auto type = file_type(values.scalar_type());
    if (type && values.numel() > 0) pieces.push_back({text_of({kind, name, first}), *type, values});
  };
  const std::vector<std::string> names = names_of(flat);
  for (const Owned& own : state.owned()) {
    const std::string& name = names[own.parameter];
    add("parameter", name, own.first, own.value);
    for (size_t i = 0; i < own.states.size(); ++i) add(fmt::format("state{}", i), name, own.first, own.states[i]);
    if (own.average.defined()) add("average", name, own.first, own.average);
  }
  for (const NamedTensor& one : untrained(flat)) add("buffer", one.name, 0, one.tensor);
  const RandomState random(device_);
  add("generator", "host", 0, random.host());
  if (random.own().defined()) add("generator", c10::DeviceTypeName(device_.type(), true), 0, random.own());
  add("own", "samples_since_average", 0, torch::full({1}, progress.samples_since_average, torch::kDouble));

  pending_->stored = checkpoint::place_of(job_.checkpoint.folder, progress.steps);
  pending_->run = run_of(progress);
  pending_->tensors = model_tensors(flat);
  auto copied = copy_of(pieces, host_, std::exchange(image_, nullptr));
  image_ = copied.value_or(nullptr);
  if (image_) pending_->bytes = image_->bytes().size();
  if (beside && device_.is_cpu())
    pending_->haste->spread_s = std::min(kSpread * (monotonic_s() - last_s_), since_last_s / 2);
  pending_->file =
      std::async(std::launch::async,
                 [copied = std::move(copied), rank = communicator_.rank(), is_first = is_first(), beside,
                  folder = job_.checkpoint.folder, stored = pending_->stored,
                  haste = pending_->haste]() -> Result<checkpoint::StoredFile> {
                   if (beside) give_way();
                   REMUDA_ASSIGN(const std::shared_ptr<checkpoint::Image> image, copied);
                   if (is_first) REMUDA_TRY(checkpoint::begin(folder, stored.step));
                   std::error_code error;
                   std::filesystem::create_directories(stored.folder, error);  // this rank may not see that yet
                   return image->write(stored, checkpoint::file_of_rank(rank), *haste);
                 });
  return {};
}

/// All have written, or failed to: rank 0 makes it a checkpoint.
Result<void> Checkpoints::conclude() {
  const std::unique_ptr<Pending> pending = std::move(pending_);
  const Result<checkpoint::StoredFile> file = pending->file.get();
  Written mine{.bytes = pending->bytes, .failed = file ? 0u : 1u};
  if (file) mine.sums = file->sums.size();
  REMUDA_ASSIGN(const std::vector<Written> all, gather_all(communicator_, mine, label::kCheckpoint));
  const auto bad = std::ranges::find_if(all, [](const Written& one) { return one.failed != 0; });
  REMUDA_ASSIGN(std::vector<std::vector<uint64_t>> sums,
                gather_sums(communicator_, file ? file->sums : std::vector<uint64_t>(), all));
  if (bad == all.end()) steps_.push_back(pending->stored.step);
  std::string why;
  if (bad != all.end()) {
    const int rank = int(bad - all.begin());
    REMUDA_ASSIGN(why, share_text(communicator_, rank, file ? "" : file.error().message, label::kCheckpoint));
    if (rank != 0) why = fmt::format("rank {} {}", rank, why);
  }
  if (!is_first()) return {};
  checkpoint::Manifest manifest{.remuda = version(),
                                .step = pending->stored.step,
                                .written_s = wall_s(),
                                .tensors = std::move(pending->tensors),
                                .run = std::move(pending->run)};
  for (size_t rank = 0; rank < all.size(); ++rank)
    manifest.files.push_back({checkpoint::file_of_rank(int(rank)), all[rank].bytes, std::move(sums[rank])});
  publish(std::move(manifest), *pending, why);
  return {};
}

/// On a thread: to remove old ones takes long where they are large.
void Checkpoints::publish(checkpoint::Manifest manifest, const Pending& pending, const std::string& failed) {
  published_ = std::async(
      std::launch::async, [manifest = std::move(manifest), stored = pending.stored, began_s = pending.began_s, failed,
                           beside = pending.beside, keep = job_.checkpoint.keep, folder = job_.checkpoint.folder] {
        if (beside) give_way();
        Published published{.stored = stored, .bytes = manifest.bytes(), .failed = failed, .beside = beside};
        const auto done = failed.empty() ? checkpoint::publish(stored, manifest) : Result<void>();
        if (!done) published.failed = done.error().message;
        published.seconds = monotonic_s() - began_s;
        if (!published.failed.empty()) {
          checkpoint::abandon(stored);
        } else if (const auto removed = checkpoint::remove_old(folder, stored.step, keep); !removed) {
          published.left = removed.error().message;
        }
        return published;
      });
}

/// Returns the seconds from the first copy until it was whole, or given up.
double Checkpoints::take_published() {
  const Published published = published_.get();
  const bool is_again =
      std::exchange(failed_step_, published.failed.empty() ? -1 : published.stored.step) == published.stored.step;
  if (published.failed.empty()) {
    ++report_.written;
    if (is_again) --report_.failed;
  } else if (!is_again) {
    ++report_.failed;
  }
  report_.why_no_last = published.failed;
  report_.last_bytes = published.bytes;
  if (published.failed.empty()) {
    report_.bytes = published.bytes;
    report_.write_s = published.seconds;
  }
  events_.send({{"event", "checkpoint"},
                {"step", published.stored.step},
                {"folder", published.stored.folder},
                {"failed", published.failed},
                {"goes_on", published.beside}});
  if (!published.left.empty()) events_.send({{"event", "note"}, {"text", published.left}});
  return published.seconds;
}

void Checkpoints::settle() {
  if (published_.valid()) report_.background_s += take_published();
}

/// Collective. In turns of a moment, so that a rank whose disk is slow is not taken for a lost one.
Result<void> Checkpoints::wait_for_all() {
  constexpr double kTurn_s = 0.02, kSayEvery_s = 0.5;
  pending_->haste->spread_s = 0;
  double said_s = 0;
  for (bool done = false; !done;) {
    if (is_first() && monotonic_s() - said_s >= kSayEvery_s) {
      said_s = monotonic_s();
      events_.send({{"event", "output"}, {"output", "checkpoint"}});
    }
    const uint32_t mine = pending_->is_written(kTurn_s) ? 1 : 0;
    REMUDA_ASSIGN(const std::vector<uint32_t> all, gather_all(communicator_, mine, label::kCheckpoint));
    done = std::ranges::find(all, 0u) == all.end();
  }
  return conclude();
}

Result<void> Checkpoints::complete() {
  if (pending_) REMUDA_TRY(wait_for_all());
  settle();
  return {};
}

/// Collective: rank 0 knows what became of it.
Result<bool> Checkpoints::has_kept(int steps) {
  if (last_step_ != steps) return false;
  bool kept = report_.why_no_last.empty();
  REMUDA_TRY(communicator_.broadcast(std::as_writable_bytes(std::span(&kept, 1)), 0, label::kCheckpoint));
  return kept;
}

Result<void> Checkpoints::finish(OwnedState& state, const FlatParameters& flat, const Progress& progress) {
  if (!active()) return {};
  REMUDA_TRY(complete());
  if (progress.optimizer_steps == 0) return {};
  double pause_s = pause_s_;
  for (int tries = 1; tries <= kWriteTries; ++tries) {
    REMUDA_ASSIGN(const bool is_kept, has_kept(progress.steps));
    if (is_kept) return {};
    if (tries > 1) {
      const std::string again = fmt::format("tries the last checkpoint again in {:.1f} s", pause_s);
      if (is_first()) events_.send({{"event", "note"}, {"text", again}});
      steady_clock().sleep_s(pause_s);
      pause_s *= 2;
    }
    REMUDA_TRY(begin(state, flat, progress, false));
    REMUDA_TRY(wait_for_all());
    if (published_.valid()) take_published();
  }
  return {};
}

}  // namespace remuda::train

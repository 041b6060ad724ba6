#include "train/buddy.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

#include "train/agreement.h"
#include "train/labels.h"
#include "train/missed_steps.h"

namespace remuda::train {
namespace {

enum CopyKind : uint32_t { kValue, kAverage, kFirstState };

std::span<std::byte> bytes_in(const torch::Tensor& values) {
  return {static_cast<std::byte*>(values.data_ptr()), values.nbytes()};
}

/// Collective: those of all ranks.
Result<std::vector<std::vector<CopiedRange>>> ranges_of_all(comm::Communicator& communicator,
                                                            const std::vector<OwnedRange>& mine) {
  REMUDA_ASSIGN(const std::vector<uint64_t> counts, gather_all(communicator, uint64_t{mine.size()}, label::kCopies));
  std::vector<std::vector<CopiedRange>> all;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    std::vector<CopiedRange>& ranges = all.emplace_back(counts[rank]);
    if (int(rank) == communicator.rank())
      std::ranges::transform(mine, ranges.begin(), [](const OwnedRange& one) { return one.place; });
    REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(ranges)), int(rank), label::kCopies));
  }
  return all;
}

torch::ScalarType type_in(const FlatParameters& flat) { return flat.parameters().at(0).scalar_type(); }

torch::Tensor room_for(std::span<const CopiedRange> ranges, const FlatParameters& flat) {
  return torch::empty({elements_of(ranges)}, torch::dtype(type_in(flat)));
}

/// Where this rank's part is copied to.
torch::Tensor room_for(const HostCopies& host, std::span<const CopiedRange> ranges, const FlatParameters& flat) {
  return host.room(elements_of(ranges), type_in(flat));
}

Result<void> copy_own(Copies& copies, size_t slot, const std::vector<OwnedRange>& owned, Model& model,
                      const HostCopies& host, const Progress& progress) {
  const torch::NoGradGuard no_grad;
  Copies::Part& part = copies.mine[slot];
  int64_t at = 0;
  for (const OwnedRange& one : owned) {
    host.copy(part.values.narrow(0, at, one.values.numel()), one.values);
    at += one.values.numel();
  }
  Copies::Own& own = copies.own[slot];
  own.progress = progress;
  own.buffers.clear();
  for (const torch::Tensor& buffer : model.buffers()) own.buffers.push_back(buffer.clone());
  own.random.emplace(host.device());
  REMUDA_TRY(host.finish("the copy of what it owns"));
  part.step = progress.steps;
  return {};
}

}  // namespace

Result<std::shared_ptr<Copies>> copies_of_own(comm::Communicator& communicator, int generation, Model& model,
                                              ShardedOptimizer& optimizer, const FlatParameters& flat,
                                              const HostCopies& host, const Progress& progress) {
  const std::vector<OwnedRange> owned = owned_ranges(model, optimizer, flat);
  auto copies = std::make_shared<Copies>(Copies{.generation = generation, .rank = communicator.rank()});
  REMUDA_ASSIGN(copies->ranges, ranges_of_all(communicator, owned));
  copies->mine[0].values = room_for(host, copies->ranges[size_t(copies->rank)], flat);
  REMUDA_TRY(copy_own(*copies, 0, owned, model, host, progress));
  return copies;
}

std::vector<OwnedRange> owned_ranges(Model& model, ShardedOptimizer& optimizer, const FlatParameters& flat) {
  std::unordered_map<const at::TensorImpl*, uint32_t> numbers;
  for (const torch::Tensor& one : model.parameters())
    numbers.emplace(one.unsafeGetTensorImpl(), uint32_t(numbers.size()));
  std::vector<OwnedRange> ranges;
  for (const Owned& own : optimizer.owned()) {
    const uint32_t number = numbers.at(flat.parameters()[own.parameter].unsafeGetTensorImpl());
    const auto add = [&](uint32_t kind, const torch::Tensor& values) {
      ranges.push_back({{number, kind, own.first, uint64_t(values.numel())}, values});
    };
    add(kValue, own.value);
    if (own.average.defined()) add(kAverage, own.average);
    for (size_t i = 0; i < own.states.size(); ++i) add(uint32_t(kFirstState + i), own.states[i]);
  }
  return ranges;
}

int64_t elements_of(std::span<const CopiedRange> ranges) {
  int64_t elements = 0;
  for (const CopiedRange& one : ranges) elements += int64_t(one.count);
  return elements;
}

Result<std::unique_ptr<Buddy>> Buddy::create(comm::Communicator& communicator, int generation, Model& model,
                                             ShardedOptimizer& optimizer, const FlatParameters& flat,
                                             const HostCopies& host) {
  std::unique_ptr<Buddy> buddy(new Buddy(model, host, owned_ranges(model, optimizer, flat)));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const int next = (rank + 1) % communicator.size();
    REMUDA_ASSIGN(std::unique_ptr<comm::Channel> channel,
                  comm::Channel::open(communicator, rank, next, label::kCopies));
    if (channel) (rank == communicator.rank() ? buddy->to_next_ : buddy->from_before_) = std::move(channel);
  }
  Copies& copies = *buddy->copies_;
  copies.generation = generation;
  copies.rank = communicator.rank();
  REMUDA_ASSIGN(copies.ranges, ranges_of_all(communicator, buddy->owned_));
  for (size_t slot = 0; slot < copies.mine.size(); ++slot) {
    copies.mine[slot].values = room_for(host, copies.ranges[size_t(copies.rank)], flat);
    copies.others[slot].values = room_for(copies.ranges[size_t(copies.other())], flat);
  }
  return buddy;
}

/// A rank of an even number sends first, and one of an odd number receives: so nobody waits in a circle.
Result<void> Buddy::keep(const Progress& progress) {
  const size_t slot = std::exchange(slot_, 1 - slot_);
  Copies::Part &mine = copies_->mine[slot], &others = copies_->others[slot];
  mine.step = others.step = Copies::kNone;
  REMUDA_TRY(copy_own(*copies_, slot, owned_, model_, host_, progress));
  const auto send = [&] { return to_next_->send(bytes_in(mine.values), label::kCopies); };
  const bool sends_first = copies_->rank % 2 == 0;
  if (sends_first) REMUDA_TRY(send());
  REMUDA_TRY(from_before_->receive(bytes_in(others.values), label::kCopies));
  others.step = progress.steps;
  if (!sends_first) REMUDA_TRY(send());
  return {};
}

void Buddy::set_timeout(double seconds) {
  to_next_->set_timeout(seconds);
  from_before_->set_timeout(seconds);
}

namespace {

/// A part that a rank has, sent as raw bytes.
struct Holding {
  int32_t generation = 0, ranks = 0;  ///< which made it, and how many
  int32_t rank = 0;                   ///< of them: whose part it is
  int32_t is_own = 0;
  int64_t step = Copies::kNone;
};
using Holdings = std::array<Holding, 4 * kMostHeld>;

Holdings holdings_of(std::span<const std::shared_ptr<Copies>> held) {
  Holdings all;
  size_t next = 0;
  for (const auto& copies : held) {
    const auto add = [&](const Copies::Part& part, int rank, bool is_own) {
      all[next++] = {copies->generation, copies->ranks(), rank, is_own, part.step};
    };
    for (const Copies::Part& part : copies->mine) add(part, copies->rank, true);
    for (const Copies::Part& part : copies->others) add(part, copies->other(), false);
  }
  return all;
}

bool holds_nothing(const Holding& one) { return one.step == Copies::kNone; }

/// A step all of whose parts are there.
struct Choice {
  int generation = 0;
  int64_t step = Copies::kNone;
  std::vector<int> holders;  ///< of each rank's part: one that has it now
};

std::optional<Choice> choice_of(const std::vector<Holdings>& all, int generation, int64_t step, int ranks) {
  Choice choice{generation, step, std::vector<int>(size_t(ranks), -1)};
  for (size_t holder = 0; holder < all.size(); ++holder) {
    bool has_own = std::ranges::all_of(all[holder], &holds_nothing);
    for (const Holding& one : all[holder]) {
      if (one.generation != generation || one.step != step) continue;
      has_own = has_own || one.is_own;
      int& first = choice.holders.at(size_t(one.rank));
      if (first < 0) first = int(holder);
    }
    if (!has_own) return std::nullopt;  // its buffers and where it stood
  }
  return std::ranges::find(choice.holders, -1) == choice.holders.end() ? std::optional(choice) : std::nullopt;
}

/// The newest; the same on all ranks.
std::optional<Choice> newest(const std::vector<Holdings>& all) {
  std::optional<Choice> best;
  for (const Holding& one : all.front()) {
    if (one.step == Copies::kNone || (best && best->step >= one.step)) continue;
    if (auto choice = choice_of(all, one.generation, one.step, one.ranks)) best = std::move(choice);
  }
  return best;
}

const Copies::Own& own_of(const Copies& copies, int64_t step) {
  const auto part = std::ranges::find(copies.mine, step, &Copies::Part::step);
  return copies.own.at(size_t(part - copies.mine.begin()));
}

/// Copies those elements of a rank's part that this rank owns now; returns how many.
int64_t take_own(std::span<const CopiedRange> ranges, const torch::Tensor& values, std::span<const OwnedRange> owned) {
  int64_t at = 0, taken = 0;
  for (const CopiedRange& from : ranges) {
    for (const OwnedRange& to : owned) {
      if (to.place.parameter != from.parameter || to.place.kind != from.kind) continue;
      const uint64_t begin = std::max(from.first, to.place.first);
      const uint64_t end = std::min(from.first + from.count, to.place.first + to.place.count);
      if (begin >= end) continue;
      const auto count = int64_t(end - begin);
      torch::Tensor(to.values)
          .narrow(0, int64_t(begin - to.place.first), count)
          .copy_(values.narrow(0, at + int64_t(begin - from.first), count));
      taken += count;
    }
    at += int64_t(from.count);
  }
  return taken;
}

/// What a rank that joins does not hold, sent as raw numbers; what it has of its own is not among it.
std::vector<double> numbers_of(const Progress& progress) {
  std::vector<double> all{double(progress.position),
                          double(progress.steps),
                          double(progress.skipped_steps),
                          progress.epoch_loss,
                          progress.epoch_weight,
                          progress.loss_scale,
                          double(progress.finite_in_a_row),
                          double(progress.optimizer_steps),
                          double(progress.missed_steps.size())};
  all.insert(all.end(), progress.missed_steps.begin(), progress.missed_steps.end());
  all.insert(all.end(), progress.loss_per_epoch.begin(), progress.loss_per_epoch.end());
  return all;
}

Progress progress_of(const std::vector<double>& all) {
  const auto missed = all.begin() + 9, losses = missed + long(all.at(8));
  return {.position = uint64_t(all.at(0)),
          .steps = int(all.at(1)),
          .skipped_steps = int(all.at(2)),
          .epoch_loss = all.at(3),
          .epoch_weight = all.at(4),
          .loss_per_epoch = {losses, all.end()},
          .loss_scale = all.at(5),
          .finite_in_a_row = int(all.at(6)),
          .optimizer_steps = int64_t(all.at(7)),
          .missed_steps = {missed, losses}};
}

/// Collective. What rank 0 has beside the values: for one that joins as if it had been there.
Result<std::shared_ptr<Copies>> share_own(comm::Communicator& communicator, const std::shared_ptr<Copies>& held,
                                          const Choice& choice, Model& model, const FlatParameters& flat) {
  const Copies::Own* const own = held ? &own_of(*held, choice.step) : nullptr;
  std::vector<double> progress = own ? numbers_of(own->progress) : std::vector<double>();
  REMUDA_ASSIGN(const std::vector<uint64_t> lengths,
                gather_all(communicator, uint64_t{progress.size()}, label::kCopies));
  progress.resize(lengths[0]);
  REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(progress)), 0, label::kCopies));
  std::vector<torch::Tensor> buffers;
  for (const torch::Tensor& buffer : own ? own->buffers : model.buffers()) {
    buffers.push_back(buffer.to(torch::kCPU, buffer.scalar_type(), false, /*copy=*/true).contiguous());
    REMUDA_TRY(communicator.broadcast(bytes_in(buffers.back()), 0, label::kCopies));
  }
  Copies made{.generation = choice.generation, .rank = int(choice.holders.size())};
  for (size_t rank = 0; rank < choice.holders.size(); ++rank) {
    uint64_t count = held ? held->ranges[rank].size() : 0;
    REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0, label::kCopies));
    std::vector<CopiedRange>& ranges = made.ranges.emplace_back(count);
    if (held) ranges = held->ranges[rank];
    REMUDA_TRY(communicator.broadcast(std::as_writable_bytes(std::span(ranges)), 0, label::kCopies));
  }
  if (held) return held;
  made.mine[0] = {choice.step, room_for({}, flat)};
  made.own[0] = {progress_of(progress), std::move(buffers), std::nullopt};
  return std::make_shared<Copies>(std::move(made));
}

}  // namespace

Result<std::optional<TakenUp>> take_up(comm::Communicator& communicator, std::span<const std::shared_ptr<Copies>> held,
                                       Model& model, ShardedOptimizer& optimizer, const FlatParameters& flat) {
  const torch::NoGradGuard no_grad;
  REMUDA_ASSIGN(const std::vector<Holdings> all, gather_all(communicator, holdings_of(held), label::kCopies));
  const std::optional<Choice> choice = newest(all);
  if (!choice) return std::nullopt;
  const auto found = std::ranges::find(held, choice->generation, &Copies::generation);
  std::shared_ptr<Copies> copies = found == held.end() ? nullptr : *found;
  const bool any_joins =
      std::ranges::any_of(all, [](const Holdings& one) { return std::ranges::all_of(one, &holds_nothing); });
  if (any_joins) {
    REMUDA_ASSIGN(copies, share_own(communicator, copies, *choice, model, flat));
  }
  const std::vector<OwnedRange> owned = owned_ranges(model, optimizer, flat);
  int64_t missing = 0;
  for (const OwnedRange& one : owned) missing += one.values.numel();
  for (int rank = 0; rank < copies->ranks(); ++rank) {
    const std::vector<CopiedRange>& ranges = copies->ranges[size_t(rank)];
    const int holder = choice->holders[size_t(rank)];
    torch::Tensor values;
    if (holder != communicator.rank())
      values = room_for(ranges, flat);
    else
      values =
          std::ranges::find(rank == copies->rank ? copies->mine : copies->others, choice->step, &Copies::Part::step)
              ->values;
    REMUDA_TRY(communicator.broadcast(bytes_in(values), holder, label::kCopies));
    missing -= take_own(ranges, values, owned);
  }
  if (missing != 0) return failed(fmt::format("the copies of step {} lack {} values", choice->step, missing));
  const Copies::Own& own = own_of(*copies, choice->step);
  const std::vector<torch::Tensor> buffers = model.buffers();
  for (size_t i = 0; i < buffers.size(); ++i) torch::Tensor(buffers[i]).copy_(own.buffers.at(i));
  if (own.random) own.random->restore();
  set_missed(optimizer, flat, model, own.progress.missed_steps);
  REMUDA_TRY(optimizer.resume(own.progress.optimizer_steps));
  return TakenUp{own.progress, found == held.end() ? nullptr : copies};
}

}  // namespace remuda::train

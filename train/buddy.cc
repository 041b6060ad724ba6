#include "train/buddy.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

#include "train/agreement.h"
#include "train/labels.h"

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

}  // namespace

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
                                             torch::Device device) {
  std::unique_ptr<Buddy> buddy(new Buddy(model, device, owned_ranges(model, optimizer, flat)));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const std::array<int, 2> both{rank, (rank + 1) % communicator.size()};
    REMUDA_ASSIGN(std::unique_ptr<comm::Communicator> channel, communicator.split(both, label::kCopies));
    if (channel) (rank == communicator.rank() ? buddy->to_next_ : buddy->from_before_) = std::move(channel);
  }
  Copies& copies = *buddy->copies_;
  copies.generation = generation;
  copies.rank = communicator.rank();
  REMUDA_ASSIGN(copies.ranges, ranges_of_all(communicator, buddy->owned_));
  const auto type = torch::dtype(flat.parameters().at(0).scalar_type());
  for (size_t slot = 0; slot < copies.mine.size(); ++slot) {
    copies.mine[slot].values = torch::empty({elements_of(copies.ranges[size_t(copies.rank)])}, type);
    copies.others[slot].values = torch::empty({elements_of(copies.ranges[size_t(copies.other())])}, type);
  }
  return buddy;
}

void Buddy::copy_own(size_t slot, const Progress& progress) {
  const torch::NoGradGuard no_grad;
  Copies::Part& part = copies_->mine[slot];
  int64_t at = 0;
  for (const OwnedRange& one : owned_) {
    part.values.narrow(0, at, one.values.numel()).copy_(one.values);
    at += one.values.numel();
  }
  Copies::Own& own = copies_->own[slot];
  own.progress = progress;
  own.buffers.clear();
  for (const torch::Tensor& buffer : model_.buffers()) own.buffers.push_back(buffer.clone());
  own.random.emplace(device_);
  part.step = progress.steps;
}

/// A rank of an even number sends first, and one of an odd number receives: so nobody waits in a circle.
Result<void> Buddy::keep(const Progress& progress) {
  const size_t slot = std::exchange(slot_, 1 - slot_);
  Copies::Part &mine = copies_->mine[slot], &others = copies_->others[slot];
  mine.step = others.step = Copies::kNone;
  copy_own(slot, progress);
  const auto send = [&] { return to_next_->broadcast(bytes_in(mine.values), 0, label::kCopies); };
  const bool sends_first = copies_->rank % 2 == 0;
  if (sends_first) REMUDA_TRY(send());
  REMUDA_TRY(from_before_->broadcast(bytes_in(others.values), 0, label::kCopies));
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

/// A step all of whose parts are there.
struct Choice {
  int generation = 0;
  int64_t step = Copies::kNone;
  std::vector<int> holders;  ///< of each rank's part: one that has it now
};

std::optional<Choice> choice_of(const std::vector<Holdings>& all, int generation, int64_t step, int ranks) {
  Choice choice{generation, step, std::vector<int>(size_t(ranks), -1)};
  for (size_t holder = 0; holder < all.size(); ++holder) {
    bool has_own = false;
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

}  // namespace

Result<std::optional<TakenUp>> take_up(comm::Communicator& communicator, std::span<const std::shared_ptr<Copies>> held,
                                       Model& model, ShardedOptimizer& optimizer, const FlatParameters& flat) {
  const torch::NoGradGuard no_grad;
  REMUDA_ASSIGN(const std::vector<Holdings> all, gather_all(communicator, holdings_of(held), label::kCopies));
  const std::optional<Choice> choice = newest(all);
  if (!choice) return std::nullopt;
  const std::shared_ptr<Copies> copies = *std::ranges::find(held, choice->generation, &Copies::generation);
  const auto part_of = [&](const std::array<Copies::Part, 2>& parts) {
    return std::ranges::find(parts, choice->step, &Copies::Part::step);
  };
  const std::vector<OwnedRange> owned = owned_ranges(model, optimizer, flat);
  int64_t missing = 0;
  for (const OwnedRange& one : owned) missing += one.values.numel();
  for (int rank = 0; rank < copies->ranks(); ++rank) {
    const std::vector<CopiedRange>& ranges = copies->ranges[size_t(rank)];
    const int holder = choice->holders[size_t(rank)];
    torch::Tensor values;
    if (holder != communicator.rank())
      values = torch::empty({elements_of(ranges)}, copies->mine[0].values.options());
    else
      values = part_of(rank == copies->rank ? copies->mine : copies->others)->values;
    REMUDA_TRY(communicator.broadcast(bytes_in(values), holder, label::kCopies));
    missing -= take_own(ranges, values, owned);
  }
  if (missing != 0) return failed(fmt::format("the copies of step {} lack {} values", choice->step, missing));
  const Copies::Own& own = copies->own[size_t(part_of(copies->mine) - copies->mine.begin())];
  const std::vector<torch::Tensor> buffers = model.buffers();
  for (size_t i = 0; i < buffers.size(); ++i) torch::Tensor(buffers[i]).copy_(own.buffers.at(i));
  own.random->restore();
  REMUDA_TRY(optimizer.resume(own.progress.optimizer_steps));
  return TakenUp{own.progress, copies};
}

}  // namespace remuda::train

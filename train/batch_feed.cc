#include "train/batch_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "balance/shares.h"
#include "profile/recorder.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr size_t kMadeKept = 4;  ///< slices: of a step, of those ahead of it, and one more

data::Range overlap(data::Range a, data::Range b) {
  const uint64_t first = std::max(a.first, b.first), end = std::min(a.first + a.count, b.first + b.count);
  return {first, end > first ? end - first : 0};
}

std::span<std::byte> rows_in(const std::shared_ptr<std::byte[]>& memory, data::Range rows, size_t bytes) {
  return {memory.get() + rows.first * bytes, rows.count * bytes};
}

}  // namespace

uint64_t CutStep::count() const { return std::accumulate(parts.begin(), parts.end(), uint64_t{0}); }

data::Range CutStep::part(int rank) const {
  const auto mine = parts.begin() + rank;
  return {first + std::accumulate(parts.begin(), mine, uint64_t{0}), uint64_t(*mine)};
}

Result<std::unique_ptr<BatchFeed>> BatchFeed::create(comm::Communicator& communicator, const data::Dataset& set,
                                                     const Options& options) {
  const int rank = communicator.rank();
  std::unique_ptr<BatchFeed> feed(new BatchFeed(rank, set, options));
  REMUDA_ASSIGN(const std::vector<int> workers, gather_all(communicator, options.workers, label::kFeed));
  for (const int maker : options.makers) feed->weights_.push_back(std::max(1, workers[size_t(maker)]));
  for (const int maker : options.makers)
    for (const int taker : options.takers) {
      REMUDA_ASSIGN(auto channel, comm::Channel::open(communicator, maker, taker, label::kFeed));
      if (channel) feed->lines_.push_back({std::move(channel), std::make_unique<WorkQueue>("feed")});
    }
  const auto own = std::ranges::find(options.makers, rank);
  if (own == options.makers.end()) return feed;
  feed->own_ = size_t(own - options.makers.begin());
  feed->loader_ =
      std::make_unique<data::Loader>(set, data::SampleOrder::shuffled(set.size(), options.seed), options.workers);
  feed->making_ = std::make_unique<WorkQueue>("make batches");
  return feed;
}

data::Range BatchFeed::slice(const CutStep& step, size_t maker) const {
  const std::vector<int> sizes = balance::apportion(int(step.count()), weights_);
  return {step.first + std::accumulate(sizes.begin(), sizes.begin() + long(maker), uint64_t{0}),
          uint64_t(sizes[maker])};
}

Result<data::LoadedBatch> BatchFeed::take(std::span<const CutStep> steps) {
  std::deque<Asked> asked;
  for (const CutStep& step : steps) {
    const auto before = std::ranges::find(asked_, step, &Asked::step);
    asked.push_back(before != asked_.end() ? *before : Asked{step, ask(step)});
  }
  asked_ = std::move(asked);
  const std::shared_ptr<Delivery> first = asked_.front().delivery;
  asked_.pop_front();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return first->missing == 0 || !outcome_; });
  if (first->missing > 0) return tl::unexpected(outcome_.error());
  return first->batch;
}

std::shared_ptr<BatchFeed::Delivery> BatchFeed::ask(const CutStep& step) {
  const data::Range mine = step.part(rank_);
  auto delivery = std::make_shared<Delivery>(Delivery{data::LoadedBatch::of(set_, mine.count, options_.memory), 0});
  if (making_) {
    delivery->missing = 1;
    making_->push([this, step, delivery] { return arrived(*delivery, make(step)); });
    return delivery;
  }
  std::vector<data::Range> pieces;
  for (size_t maker = 0; maker < lines_.size(); ++maker) pieces.push_back(overlap(slice(step, maker), mine));
  delivery->missing = int(std::ranges::count_if(pieces, [](data::Range piece) { return piece.count > 0; }));
  for (size_t maker = 0; maker < lines_.size(); ++maker)
    if (const data::Range piece = pieces[maker]; piece.count > 0)
      receive(lines_[maker], delivery, {piece.first - mine.first, piece.count});
  return delivery;
}

void BatchFeed::receive(Line& line, const std::shared_ptr<Delivery>& delivery, data::Range rows) {
  line.queue->push(
      [this, &from = *line.channel, delivery, rows] { return arrived(*delivery, pass(from, delivery->batch, rows)); });
}

/// Rows of a batch go from the maker to the other rank of the channel.
Result<void> BatchFeed::pass(comm::Channel& channel, const data::LoadedBatch& batch, data::Range rows) {
  const profile::Span span("pass samples", {{{"samples", int64_t(rows.count)}}});
  const auto go = [&](std::span<std::byte> bytes) {
    return making_ ? channel.send(bytes, label::kFeed) : channel.receive(bytes, label::kFeed);
  };
  REMUDA_TRY(go(rows_in(batch.inputs, rows, set_.input_bytes())));
  return go(rows_in(batch.targets, rows, set_.target_bytes()));
}

/// Notes that another slice is there, or why it is not.
Result<void> BatchFeed::arrived(Delivery& delivery, const Result<void>& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (outcome) --delivery.missing;
    if (!outcome && outcome_) outcome_ = outcome;
  }
  changed_.notify_all();
  return outcome;
}

/// On the thread that makes batches.
Result<void> BatchFeed::make(const CutStep& step) {
  const data::Range mine = slice(step, own_);
  if (mine.count == 0) return {};
  REMUDA_ASSIGN(const data::LoadedBatch batch, slice_of(mine));
  for (size_t i = 0; i < lines_.size(); ++i) {
    const data::Range piece = overlap(mine, step.part(options_.takers[i]));
    if (piece.count == 0) continue;
    const data::Range rows{piece.first - mine.first, piece.count};
    lines_[i].queue->push([this, &to = *lines_[i].channel, batch, rows] {
      Delivery sent;
      return arrived(sent, pass(to, batch, rows));
    });
  }
  return {};
}

Result<data::LoadedBatch> BatchFeed::slice_of(data::Range range) {
  if (const auto made = std::ranges::find(made_, range, &Made::range); made != made_.end()) return made->batch;
  REMUDA_ASSIGN(data::LoadedBatch batch, loader_->take(range));
  made_.push_back({range, batch});
  if (made_.size() > kMadeKept) made_.pop_front();
  return batch;
}

void BatchFeed::set_timeout(double seconds) {
  if (std::exchange(timeout_s_, seconds) == seconds) return;
  for (Line& line : lines_)
    line.queue->push([&channel = *line.channel, seconds]() -> Result<void> {
      channel.set_timeout(seconds);
      return {};
    });
}

}  // namespace remuda::train

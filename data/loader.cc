#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <optional>

#include "profile/recorder.h"

namespace remuda::data {
namespace {

constexpr std::chrono::minutes kLongestSample{10};
constexpr std::align_val_t kAlignment{64};  // a cache line, as libtorch's own tensors have it

/// Rows that a thread takes at once: enough that cheap samples do not wait for the lock, and ever fewer towards the end
/// of a batch, so that no thread is late.
constexpr uint64_t kMostAtOnce = 32;
constexpr uint64_t kTurnsLeft = 4;

}  // namespace

/// A batch that is being made.
struct Loader::Pending {
  Range range;
  LoadedBatch memory;
  std::vector<Row> rows;
  uint64_t next = 0;           ///< no row before it is open
  uint64_t missing = 0;        ///< rows that are not done
  std::optional<Error> error;  ///< of one sample; then no more are begun

  bool is_open() {
    while (next < range.count && rows[next] != Row::open) ++next;
    return next < range.count && !error;
  }
  bool is_settled() const { return missing == 0 || error; }
};

std::shared_ptr<std::byte[]> plain_memory(size_t bytes) {
  auto* const start = static_cast<std::byte*>(::operator new[](bytes, kAlignment));
  return std::shared_ptr<std::byte[]>(start, [](std::byte* block) { ::operator delete[](block, kAlignment); });
}

LoadedBatch LoadedBatch::of(const Dataset& set, uint64_t count, const BatchMemory& memory) {
  return {memory(count * set.input_bytes()), memory(count * set.target_bytes())};
}

Loader::Loader(const Dataset& set, SampleOrder order, int workers, BatchMemory memory)
    : set_(set),
      order_(order),
      input_bytes_(set.input_bytes()),
      target_bytes_(set.target_bytes()),
      memory_(std::move(memory)) {
  for (int i = 0; i < workers; ++i)
    threads_.emplace_back([this, i, recorder = profile::recorder_here()] {
      const profile::Join join(recorder, fmt::format("data {}", i + 1));
      work();
    });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (const auto batch = open_batch())
      make_some(lock, *batch);
    else
      work_.wait(lock);
  }
}

/// The first batch that has rows to make, or null.
std::shared_ptr<Loader::Pending> Loader::open_batch() const {
  const auto found = std::ranges::find_if(queue_, [](const auto& batch) { return batch->is_open(); });
  return found == queue_.end() ? nullptr : *found;
}

/// Makes some rows without the lock; false where none is left to make.
bool Loader::make_some(std::unique_lock<std::mutex>& lock, Pending& batch) {
  if (!batch.is_open()) return false;
  const uint64_t share = batch.missing / (kTurnsLeft * (threads_.size() + 1));
  const uint64_t most = std::clamp<uint64_t>(share, 1, kMostAtOnce), first = batch.next;
  uint64_t end = first;
  while (end < batch.range.count && end - first < most && batch.rows[end] == Row::open) batch.rows[end++] = Row::begun;
  lock.unlock();
  uint64_t row = first;
  Result<void> made;
  {
    const profile::Span span("make samples", {{{"samples", int64_t(end - first)}}});
    for (; row < end && !stop_; ++row)
      if (made = make(batch, row); !made) break;
  }
  lock.lock();
  std::fill(batch.rows.begin() + int64_t(first), batch.rows.begin() + int64_t(row), Row::done);
  batch.missing -= row - first;
  if (!made) batch.error = made.error();
  if (batch.is_settled()) done_.notify_all();
  return true;
}

Result<void> Loader::make(const Pending& batch, uint64_t row) const {
  try {
    const auto [epoch, index] = order_[batch.range.first + row];
    return set_.write(index, epoch, {batch.memory.inputs.get() + row * input_bytes_, input_bytes_},
                      {batch.memory.targets.get() + row * target_bytes_, target_bytes_});
  } catch (const std::exception& error) {
    return failed(fmt::format("cannot make a sample: {}", error.what()));
  }
}

/// Copies the rows that are done and that both have.
void Loader::reuse(const Pending& from, Pending& to) const {
  const uint64_t begin = std::max(from.range.first, to.range.first);
  const uint64_t end = std::min(from.range.first + from.range.count, to.range.first + to.range.count);
  for (uint64_t position = begin; position < end; ++position) {
    const uint64_t old_row = position - from.range.first, row = position - to.range.first;
    if (from.rows[old_row] != Row::done || to.rows[row] != Row::open) continue;
    const auto copy = [&](const auto& source, const auto& target, size_t bytes) {
      std::memcpy(target.get() + row * bytes, source.get() + old_row * bytes, bytes);
    };
    copy(from.memory.inputs, to.memory.inputs, input_bytes_);
    copy(from.memory.targets, to.memory.targets, target_bytes_);
    to.rows[row] = Row::done;
    --to.missing;
  }
}

/// Makes the queue one of these ranges, in their order.
void Loader::expect(std::span<const Range> ranges) {
  std::deque<std::shared_ptr<Pending>> queue;
  for (const Range range : ranges) {
    const auto same = std::ranges::find_if(queue_, [&](const auto& batch) { return batch->range == range; });
    if (same != queue_.end()) {
      queue.push_back(*same);
      continue;
    }
    auto batch = std::make_shared<Pending>();
    batch->range = range;
    batch->memory = LoadedBatch::of(set_, range.count, memory_);
    batch->rows.assign(range.count, Row::open);
    batch->missing = range.count;
    for (const auto& old : queue_) reuse(*old, *batch);
    queue.push_back(std::move(batch));
  }
  queue_ = std::move(queue);
}

Result<LoadedBatch> Loader::take(Range range, std::span<const Range> next) {
  std::vector<Range> ranges{range};
  ranges.insert(ranges.end(), next.begin(), next.end());
  std::unique_lock lock(mutex_);
  expect(ranges);
  work_.notify_all();
  const auto batch = queue_.front();
  while (make_some(lock, *batch)) {
  }
  const bool settled = done_.wait_for(lock, kLongestSample, [&] { return batch->is_settled(); });
  queue_.pop_front();
  if (!settled) return failed("a sample could not be read within 10 minutes; is the file system of the data there?");
  if (batch->error) return tl::unexpected(*batch->error);
  return batch->memory;
}

}  // namespace remuda::data

// Loader: batches made by worker threads, ahead of the step that takes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/sample_order.h"

namespace remuda::data {

/// Positions of a run: [first, first + count).
struct Range {
  uint64_t first = 0, count = 0;
  bool operator==(const Range&) const = default;
};

/// Gives memory for so many bytes, aligned to a cache line, which is free again with the last copy of the pointer. Any
/// thread.
using BatchMemory = std::function<std::shared_ptr<std::byte[]>(size_t bytes)>;

/// From the heap.
std::shared_ptr<std::byte[]> plain_memory(size_t bytes);

/// Memory for the samples of a batch, one after the other.
struct LoadedBatch {
  static LoadedBatch of(const Dataset& set, uint64_t count, const BatchMemory& memory = plain_memory);
  std::shared_ptr<std::byte[]> inputs, targets;
};

/// Used by one thread. What a batch holds depends on its range only, not on the number of workers or on what was taken
/// before.
class Loader {
 public:
  /// Starts `workers` threads, or none: then take() makes its batch itself. The set outlives it.
  Loader(const Dataset& set, SampleOrder order, int workers, BatchMemory memory = plain_memory);
  /// The threads end after the sample under way.
  ~Loader();

  /// The batch of a range; `next` are those that will probably be taken after it, and are made meanwhile. Samples of
  /// ranges that are no longer expected are kept where one of the new ranges holds them. The caller works along with
  /// the threads while its batch lacks a sample. Where a sample of this batch cannot be made, its error; also where one
  /// takes longer than 10 minutes.
  Result<LoadedBatch> take(Range range, std::span<const Range> next = {});

 private:
  enum class Row : uint8_t { open, begun, done };
  struct Pending;

  void work();
  bool make_some(std::unique_lock<std::mutex>& lock, Pending& batch);
  Result<void> make(const Pending& batch, uint64_t row) const;
  void expect(std::span<const Range> ranges);
  void reuse(const Pending& from, Pending& to) const;
  std::shared_ptr<Pending> open_batch() const;

  const Dataset& set_;
  const SampleOrder order_;
  const size_t input_bytes_, target_bytes_;
  const BatchMemory memory_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Pending>> queue_;  ///< the one being taken first
  std::atomic<bool> stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace remuda::data

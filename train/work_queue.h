// WorkQueue: a thread that runs the functions it is given, in order, and keeps the first error.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace remuda::train {

class WorkQueue {
 public:
  using Work = std::function<Result<void>()>;

  /// `track`: what the recorder of a profile calls its thread.
  explicit WorkQueue(const char* track = "exchange");
  /// Finishes the function that is running, drops the rest.
  ~WorkQueue();

  /// Returns the work's number: 1, 2, ...
  uint64_t push(Work work);
  /// Whether this work has ended, or was dropped after an error.
  bool is_done(uint64_t number);
  /// Waits until it has. The error is that of drain().
  Result<void> wait(uint64_t number);
  /// Waits until all work is done. After an error the work behind it is dropped, and every drain() returns that error.
  Result<void> drain();

 private:
  void run();
  bool has_ended(uint64_t number) const { return !outcome_ || ended_ >= number; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  uint64_t pushed_ = 0, ended_ = 0;
  bool busy_ = false;
  bool stop_ = false;
  Result<void> outcome_;
  std::thread thread_;
};

}  // namespace remuda::train

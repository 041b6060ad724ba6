// WorkQueue: a thread that runs the functions it is given, in order, and keeps the first error.
#pragma once

#include <condition_variable>
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

  void push(Work work);
  /// Waits until all work is done. After an error the work behind it is dropped, and every drain() returns that error.
  Result<void> drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool busy_ = false;
  bool stop_ = false;
  Result<void> outcome_;
  std::thread thread_;
};

}  // namespace remuda::train

// Feed: the newest snapshot of a source as text, shared by all who look. The source is asked by one thread, at most
// once in a period, and only while somebody looks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "snapshot/source.h"

namespace remuda::web {

/// One snapshot, or {"version": 1, "error": "sentence"} where the source has none.
struct Frame {
  uint64_t id = 0;  ///< grows with each change
  std::string text;
};

/// Safe from any thread.
class Feed {
 public:
  Feed(snapshot::Source& source, double period_s);
  ~Feed();
  Feed(const Feed&) = delete;

  /// The first frame that is not `seen`, which it waits for, up to `patience_s`; null after that, and once stopped.
  /// None is older than the period. `seen` 0: any.
  std::shared_ptr<const Frame> next(uint64_t seen, double patience_s);
  /// Ends all waits, for good.
  void stop();

 private:
  void work();

  snapshot::Source& source_;
  const double period_s_;
  std::mutex mutex_;
  std::condition_variable wanted_, changed_;
  std::shared_ptr<const Frame> frame_;
  double taken_s_;
  bool is_wanted_ = false, is_stopped_ = false;
  std::thread thread_;
};

}  // namespace remuda::web

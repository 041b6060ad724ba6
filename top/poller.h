// Poller: asks a source for pictures, once a second, on a thread of its own, so that one that is slow holds up no key.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/result.h"
#include "snapshot/source.h"
#include "top/picture.h"

namespace remuda::top {

/// Safe from any thread.
class Poller {
 public:
  static constexpr double kEvery_s = 1;

  /// `source` outlives it.
  static Result<std::unique_ptr<Poller>> start(snapshot::Source& source, Range range, double every_s = kEvery_s);
  /// Waits for the source where it is being asked.
  ~Poller();
  Poller(const Poller&) = delete;

  /// Readable, in the sense of poll, once there is a picture that picture() has not given yet.
  int fd() const { return news_.get(); }
  /// The newest one; never null.
  std::shared_ptr<const Picture> picture();
  /// Asks at once, and for histories of this range from now on.
  void show(Range range);

 private:
  Poller(snapshot::Source& source, Range range, double every_s, Fd news);
  void work();

  snapshot::Source& source_;
  const double every_s_;
  const Fd news_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Picture> picture_ = std::make_shared<Picture>();
  Range range_;
  bool is_asked_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace remuda::top

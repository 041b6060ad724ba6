// Bell: how a process that changed a pool wakes those that wait.
//
// Each waiter hangs a named pipe into a folder, and whoever rings writes a byte into every one of them. Not inotify: a
// user may have 128 of its instances, and more jobs than that may wait. A pipe without a reader costs nothing and stays
// until somebody hangs the next bell. Rings may be lost when a process dies between its change and the ring; waiters
// watch processes, too.
#pragma once

#include <string>
#include <unistd.h>

#include "base/file.h"
#include "base/result.h"

namespace remuda::pool {

/// One thread.
class Bell {
 public:
  /// The folder is made if it is not there, with the group permissions of the one it stands in.
  static Result<Bell> hang(const std::string& folder);
  /// Wakes all who wait at this folder. What cannot be rung is passed over.
  static void ring(const std::string& folder);

  Bell(Bell&& other) noexcept = default;
  Bell& operator=(Bell&&) = delete;
  ~Bell();

  /// Readable once it has been rung.
  int fd() const { return fd_.get(); }
  /// Forgets the rings so far.
  void hush();

 private:
  Bell(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)), owner_(::getpid()) {}
  std::string path_;
  Fd fd_;        ///< empty once moved from
  pid_t owner_;  ///< a forked child leaves the bell alone
};

}  // namespace remuda::pool

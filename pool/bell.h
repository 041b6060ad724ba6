// Bell: how a process that has changed a pool wakes those that wait for a change.
//
// Each waiter makes a named pipe in the pool's folder `bells`, and a process that rings writes a byte into each of
// them. Not inotify: a user may have only 128 instances of it, and more jobs than that may wait. A pipe without a
// reader costs nothing and stays until the next bell is made. A ring is lost when a process dies between its change and
// the ring, so waiters watch processes, too.
#pragma once

#include <string>
#include <unistd.h>

#include "base/file.h"
#include "base/result.h"
#include "pool/files.h"

namespace remuda::pool {

/// One thread.
class Bell {
 public:
  /// Makes a bell in the folder of a pool, with its group permissions.
  static Result<Bell> create(const std::string& pool);
  /// Wakes all processes that wait at this pool. Skips a pipe that cannot be written.
  static void ring(const std::string& pool);

  Bell(Bell&& other) noexcept = default;
  Bell& operator=(Bell&&) = delete;
  ~Bell();

  /// Readable once it has been rung.
  int fd() const { return fd_.get(); }
  /// Forgets the rings so far.
  void clear();

 private:
  Bell(Folder folder, std::string name, Fd fd)
      : folder_(std::move(folder)), name_(std::move(name)), fd_(std::move(fd)), owner_(::getpid()) {}
  Folder folder_;
  std::string name_;
  Fd fd_;        ///< empty once moved from
  pid_t owner_;  ///< a forked child leaves the bell alone
};

/// Makes the folder for a pool's bells, unless it exists.
Result<Folder> make_bell_folder(const std::string& pool);

}  // namespace remuda::pool

// Bell: how a process that changed a pool wakes those that wait.
//
// Each waiter hangs a named pipe into the pool's folder `bells`, and a process that rings writes a byte into every one
// of them. Not inotify: a user may have 128 of its instances, and more jobs than that may wait. A pipe without a reader
// costs nothing and stays until the next bell is hung. Rings may be lost when a process dies between its change and the
// ring; waiters watch processes, too.
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
  /// In the folder of a pool, with its group permissions.
  static Result<Bell> hang(const std::string& pool);
  /// Wakes all who wait at this pool. What cannot be rung is passed over.
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

/// Makes the folder in which a pool's bells hang, unless it is there.
Result<Folder> make_bell_folder(const std::string& pool);

}  // namespace remuda::pool

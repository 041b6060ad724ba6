// MachineThread: reads the machine beside the agent's loop. A driver that hangs then delays grants, and nothing else.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/result.h"
#include "pool/machine_view.h"

namespace remuda::agent {

/// Used by one thread.
class MachineThread {
 public:
  /// Starts with a reading that was taken. The thread lives as long as this object: processes that a probe starts end
  /// with the thread that started them.
  explicit MachineThread(pool::MachineView view);
  ~MachineThread();
  MachineThread(const MachineThread&) = delete;

  /// Begins a reading, unless one is under way: that one may have begun before what the caller wants to see, so another
  /// follows it.
  void ask();
  /// Readable when a reading has come.
  int fd() const { return ready_.get(); }
  /// The newest reading since the last call, or why there is none; null where nothing has come.
  std::unique_ptr<Result<pool::MachineView>> take();

 private:
  void work();

  pool::MachineView view_;  ///< the thread's own
  Fd ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false, ends_ = false;
  std::unique_ptr<Result<pool::MachineView>> read_;
  std::thread thread_;
};

}  // namespace remuda::agent

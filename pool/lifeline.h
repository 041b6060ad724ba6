// Lifeline: how a keeper and its job show that they live to those who cannot see them, in a container with process ids
// of its own.
//
// A named pipe in the pool's folder, under its keeper's ProcessId. The keeper holds it open for reading, and so do the
// processes of its job, which inherit it. As soon as the last of them is gone, however it died, the kernel reports that
// to every process that holds the other end. Nothing is written into it. Unlike a lock it needs no file system that has
// locks, and can be waited for without looking again and again.
#pragma once

#include <string>

#include "base/file.h"
#include "base/result.h"
#include "pool/files.h"
#include "process/process_id.h"

namespace remuda::pool {

/// One thread. A child that was forked inherits the pipe until it executes another program, and leaves its name alone.
class Lifeline {
 public:
  /// That of `process`, in a pool's folder that is there.
  static Result<Lifeline> hold(const std::string& folder,
                               const process::ProcessId& process = process::own_process_id());

  Lifeline(Lifeline&&) noexcept = default;
  Lifeline& operator=(Lifeline&&) = delete;
  ~Lifeline();

  /// For the processes of the job, which do not close it when they are executed. Its number is above those that shell
  /// scripts use.
  int fd() const { return fd_.get(); }

 private:
  Lifeline(Folder folder, std::string name, Fd fd);
  Folder folder_;
  std::string name_;
  Fd fd_;  ///< empty once moved from
  int owner_;
};

/// Whether the process is alive, or, where it is of another pid namespace, it or its job. What cannot be looked at
/// counts as alive: better a device held too long than twice.
bool lives(const std::string& folder, const process::ProcessId& process);

/// A process that waits in the queue beats at least this often; see is_working().
inline constexpr double kLongestBeat_s = 75;
/// Shows that this process, which holds its lifeline here, gets to run. Nothing where that cannot be written.
void beat(const std::string& folder);
/// Whether a keeper that waits lives and gets to run: false for one that was stopped (SIGSTOP), and for one that has
/// not beaten for longer than kLongestBeat_s, as its cgroup is frozen or it hangs in a call of the kernel.
bool is_working(const std::string& folder, const process::ProcessId& process);

/// Ready for poll() when lives() has turned false; empty where it has already, or the kernel tells no ends.
Fd end_of(const std::string& folder, const process::ProcessId& process);

/// Whether a process holds a lifeline in this pool.
bool is_in_use(const std::string& folder);

/// Removes the lifelines that nobody holds any more.
void sweep_lifelines(const std::string& folder);

}  // namespace remuda::pool

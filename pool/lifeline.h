// Lifeline: how a keeper and its job show that they live to processes that cannot see them, as those in a container
// with process ids of its own.
//
// A named pipe in the pool's folder, under its keeper's ProcessId. The keeper holds it open for reading, and so do the
// processes of its job, which inherit it. As soon as the last of them is gone, however it died, the kernel reports that
// to every process that holds the other end. Nothing is written into it. Unlike a lock it needs no file system that has
// locks, and a process can wait for it without polling.
#pragma once

#include <string>

#include "base/file.h"
#include "base/result.h"
#include "pool/files.h"
#include "process/process_id.h"

namespace remuda::pool {

/// One thread. A forked child inherits the pipe until it executes another program, and does not remove its name.
class Lifeline {
 public:
  /// Makes and holds the lifeline of `process`, in a pool's folder that exists.
  static Result<Lifeline> hold(const std::string& folder,
                               const process::ProcessId& process = process::own_process_id());

  Lifeline(Lifeline&&) noexcept = default;
  Lifeline& operator=(Lifeline&&) = delete;
  ~Lifeline();

  /// The descriptor for the processes of the job, which exec does not close. Its number is above those that shell
  /// scripts use.
  int fd() const { return fd_.get(); }

 private:
  Lifeline(Folder folder, std::string name, Fd fd);
  Folder folder_;
  std::string name_;
  Fd fd_;  ///< empty once moved from
  int owner_;
};

/// Whether the process is alive; where it is in another pid namespace, whether it or its job is. A process whose state
/// cannot be read counts as alive: better a device held too long than twice.
bool lives(const std::string& folder, const process::ProcessId& process);

/// A process that waits in the queue calls beat() at least this often; see is_working().
inline constexpr double kLongestBeat_s = 75;
/// Shows that this process, which holds its lifeline here, still makes progress. Does nothing where that cannot be
/// written.
void beat(const std::string& folder);
/// Whether a waiting keeper lives and makes progress: false for one that was stopped (SIGSTOP), and for one that has
/// not called beat() for longer than kLongestBeat_s, because its cgroup is frozen or it hangs in a system call.
bool is_working(const std::string& folder, const process::ProcessId& process);

/// A descriptor that is ready for poll() when lives() has turned false; empty where it has already, or where the kernel
/// does not report the ends of processes.
Fd end_of(const std::string& folder, const process::ProcessId& process);

/// Whether a process holds a lifeline in this pool.
bool is_in_use(const std::string& folder);

/// Removes the lifelines that no process holds any more.
void sweep_lifelines(const std::string& folder);

}  // namespace remuda::pool

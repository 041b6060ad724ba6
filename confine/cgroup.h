// The cgroup of a job: contains all of its processes, also those that left their parent or changed their environment.
//
// A process cannot leave its cgroup unless it may write to another one, and its children are born into it. The cgroup
// outlives every process of remuda, so the next command on the pool after a kill -9 finds the job's processes in it:
// its name is derived from the pool and the job's number. A restart of the host ends it, as it does its processes.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "confine/cgroup_place.h"
#include "process/process_id.h"

namespace remuda::confine {

/// Identifies a pool among all others, also those under the same path, as in containers, or after the pool was removed
/// and made again: a hash of its folder's path, device, inode number and time of birth. Empty where there is no such
/// folder.
std::string pool_identity(const std::string& pool);

/// "remuda-POOL-JOB", where POOL is the pool's identity. Empty where there is no such folder.
std::string cgroup_name(const std::string& pool, int64_t job);

/// A cgroup that this process made; it is removed with this object once its last process is gone.
class JobCgroup {
 public:
  /// Makes it below this process's own cgroup. An empty one of that name is replaced. The error is a clause, to be part
  /// of a sentence, that says why there is none.
  static Result<JobCgroup> make(const CgroupPlace& place, const std::string& name);

  JobCgroup(JobCgroup&& other) noexcept;
  JobCgroup& operator=(JobCgroup&&) = delete;
  ~JobCgroup();

  int version() const { return version_; }
  const std::string& folder() const { return folder_; }
  /// Leaves the cgroup to others: it stays, and this object is empty.
  void release();
  /// Its open folder, closed by exec, for ProcessSpec::cgroup (process/spawn.h).
  int fd() const { return fd_.get(); }

 private:
  JobCgroup(int version, std::string folder, Fd fd)
      : version_(version), folder_(std::move(folder)), fd_(std::move(fd)) {}
  int version_;
  std::string folder_;  ///< empty: moved to another object
  Fd fd_;
};

/// The cgroups of that name, anywhere in the visible trees: it may have been made below another cgroup than this
/// process's.
std::vector<std::string> find_cgroups(const std::string& name);

/// The numbers of the processes in it and in the cgroups below it, as far as they are visible here: a read for each
/// cgroup, however many they are. A process may have ended since.
std::vector<int> cgroup_pids(const std::string& folder);
/// The processes themselves: a read for each.
std::vector<process::ProcessId> cgroup_members(const std::string& folder);
/// Moves a process, with its threads, into it; children that it has already stay where they are. False where the kernel
/// refuses, or the process has ended.
bool move_into(const std::string& cgroup, const process::ProcessId& process);
/// The same, for a cgroup of each of several trees.
bool move_into_all(const std::vector<std::string>& cgroups, const process::ProcessId& process);
/// Sends SIGKILL to all of them at once; false where the kernel does not offer that. cgroup_members() returns those
/// left.
bool kill_cgroup(const std::string& folder);
/// Removes it, with the cgroups below it, once it has no process. Returns whether it has no process now: true also
/// where only another user may remove it. Waits for processes that are about to end, `patience_s` at most.
bool remove_cgroup(const std::string& folder, double patience_s = 0);

}  // namespace remuda::confine

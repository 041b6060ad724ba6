// The cgroup of a job: all of its processes, wherever they went, whatever they did to their environment.
//
// A process cannot leave its cgroup unless it may write to another one, and its children are born into it. The cgroup
// outlives every process of remuda, so the next command on the pool after a kill -9 finds the job's processes in it:
// its name is derived from the pool and the job's number. It is gone with the host's restart, as its processes are.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "confine/cgroup_place.h"
#include "process/process_id.h"

namespace remuda::confine {

/// Tells a pool from every other one, also from those under the same path, as in containers, or made anew after this
/// one was removed: a hash of its folder's path, device, inode number and time of birth. Empty where there is no such
/// folder.
std::string pool_identity(const std::string& pool);

/// "remuda-POOL-JOB", where POOL is the pool's identity. Empty where there is no such folder.
std::string cgroup_name(const std::string& pool, int64_t job);

/// A cgroup that this process made, and that goes with this object and its last process.
class JobCgroup {
 public:
  /// Makes it below this process's own cgroup. An empty one of that name is replaced. The error is a clause that says
  /// what stands in the way: nobody asked for a cgroup.
  static Result<JobCgroup> make(const CgroupPlace& place, const std::string& name);

  JobCgroup(JobCgroup&& other) noexcept;
  JobCgroup& operator=(JobCgroup&&) = delete;
  ~JobCgroup();

  int version() const { return version_; }
  const std::string& folder() const { return folder_; }
  /// Its open folder, closed by exec, for ProcessSpec::cgroup (process/spawn.h).
  int fd() const { return fd_.get(); }

 private:
  JobCgroup(int version, std::string folder, Fd fd)
      : version_(version), folder_(std::move(folder)), fd_(std::move(fd)) {}
  int version_;
  std::string folder_;  ///< empty: handed to another object
  Fd fd_;
};

/// The cgroups of that name, anywhere in the trees that can be seen: it may have been made from another place.
std::vector<std::string> find_cgroups(const std::string& name);

/// The processes in it and in those within it, as far as they can be seen from here.
std::vector<process::ProcessId> cgroup_members(const std::string& folder);
/// SIGKILL for all of them at once, where the kernel offers that; cgroup_members() tells who is left.
void kill_cgroup(const std::string& folder);
/// Removes it, with those within it, once it has no process. Whether it has none now: true also where none is left, but
/// another user must remove it. Waits for processes that are about to go, `patience_s` at most.
bool remove_cgroup(const std::string& folder, double patience_s = 0);

}  // namespace remuda::confine

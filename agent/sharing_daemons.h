// SharingDaemons: the daemons through which jobs of one user compute on a device at once (share/mps.h), where the
// policy allows them ([sharing] mps). Jobs cannot keep them themselves: a daemon would end with the job that started
// it.
//
// Each is for one user and one device, runs as that user, in a cgroup of its own, and has sockets that nobody else
// reaches. It is there as long as a job that it was started for has its part of the device. When the agent is killed,
// it goes on, as the jobs do: the next agent finds it by the name of its cgroup, and ends it where no job needs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/left_cgroups.h"
#include "base/clock.h"
#include "device/inventory.h"
#include "pool/operation.h"
#include "pool/state.h"
#include "process/child.h"
#include "process/credentials.h"

namespace remuda::agent {

/// One thread. Never waits. Times are those of the steady clock.
class SharingDaemons {
 public:
  struct Options {
    std::string pool;    ///< by which cgroups are named
    std::string folder;  ///< the agent's own, which it makes; others may enter it
  };
  /// None at all.
  SharingDaemons() = default;
  explicit SharingDaemons(Options options);

  /// A daemon that runs, or is about to.
  struct Daemon {
    int64_t number = 0;  ///< below 0: no job's
    std::string device, cgroup;
  };
  /// The agent starts: those of the one before it that jobs still need; the others are ended.
  std::vector<Daemon> find_again(const pool::PoolState& state, double now_s);
  /// A job was granted its devices, and nothing of it has started yet: starts what it needs that does not run, where
  /// the policy allows it. Returns what is to be recorded of the job; nothing where it has no use for a daemon.
  std::optional<pool::RecordDaemons> begin(const pool::PoolState& state, const pool::Job& job,
                                           const Inventory& inventory, bool is_allowed, double now_s);
  /// Those that have been started since the last call.
  std::vector<Daemon> take_started() { return std::exchange(started_, {}); }
  /// The pool has changed: ends the daemons that no job needs any more, and returns their numbers.
  std::vector<int64_t> see(const pool::PoolState& state, double now_s);

  /// Looks at what is being started, and removes what has ended.
  void step(double now_s);
  double next_s() const { return next_s_; }

 private:
  using Key = std::pair<int, std::string>;  ///< user, and name of the device's folder
  struct Kept {
    int64_t number = 0;
    std::string cgroup;
    std::optional<process::ChildProcess> starter;
    double until_s = 0;  ///< when the starter is ended
  };
  Kept& keep(const Key& key, const std::string& cgroup);
  std::string folder_of(int uid) const;
  std::string cgroup_name(const Key& key) const;
  Result<void> make_folders(const Key& key, const process::Credentials& owner) const;
  Result<void> start(const Key& key, const Device& device, const process::Credentials& user, double now_s);
  void end(const Key& key, const std::string& cgroup);

  Options options_;
  std::map<Key, Kept> kept_;
  std::vector<Daemon> started_;
  LeftCgroups left_;  ///< their processes were killed
  int64_t next_number_ = -1;
  double next_s_ = kNever_s;
};

}  // namespace remuda::agent

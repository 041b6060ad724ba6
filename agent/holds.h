// Holds: what the agent knows of the processes of the jobs that have not ended, and what it does to them.
//
// A process belongs to one job: it is never moved out of the cgroup of one that runs.
//
// A job runs until its cgroup is empty, whatever its keeper says: the keeper's word gives only how it ended. Where no
// cgroup can be made, the job's processes are its keeper and all that descends from it, as it was seen each second (of
// thousands of processes some hundreds are looked at in a step).
// What is left when the keeper has given its word, or is gone, is killed; so is a job that has not ended in time after
// it was asked to: its grace time, and a few seconds.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/job_cgroup.h"
#include "agent/left_cgroups.h"
#include "base/clock.h"
#include "base/file.h"
#include "confine/device_nodes.h"
#include "pool/operation.h"
#include "process/tree_scan.h"

namespace remuda::agent {

/// The longest grace time that is granted.
inline constexpr double kLongestGrace_s = 600;

/// One thread. Times are those of the steady clock.
class Holds {
 public:
  explicit Holds(std::string pool);

  /// A job, whose keeper is watched from here on.
  void add(const pool::Job& job);
  /// One that was running already, under an agent before this one, which was there until `seen_s`, on the wall clock;
  /// 0: nobody knows. Where nothing but its keeper is left of it, it has ended since then: when, its keeper may say for
  /// a moment. False where it is not in a cgroup of that agent's.
  bool find_again(const pool::Job& job, std::vector<confine::DeviceNode> nodes, double seen_s, double now_s);
  /// The scheduler has started the job: makes its cgroup and moves its keeper there. Returns what is in force, to be
  /// recorded. `nodes` are those of its devices.
  pool::RecordConfinement begin(const pool::Job& job, const std::optional<confine::Withheld>& withheld,
                                std::vector<confine::DeviceNode> nodes, double now_s);
  /// The job has changed: it may have been asked to end.
  void see(const pool::Job& job, double now_s);
  /// The keeper's word on how a running job ended, or that it is to be queued again: done once no process is left.
  void say(int64_t job, pool::Operation word, double now_s);
  /// Whether what say() was told has not been done yet, and soon may be.
  bool has_word(int64_t job, double now_s) const;
  /// Whether say() was told something that is not recorded yet.
  bool has_said(int64_t job) const;
  bool has(int64_t job) const { return holds_.contains(job); }
  /// Makes a process that is of no job one of a job that runs. False where that is not held by a
  /// cgroup, or the kernel refuses.
  bool enter(int64_t job, const process::ProcessId& process);
  /// The running job in whose cgroup the process is; 0: none.
  int64_t job_of(const process::ProcessId& process) const;
  /// Whether it was begun.
  bool runs(int64_t job) const;
  /// The job waits again.
  void rest(int64_t job);
  /// The job has ended.
  void forget(int64_t job);

  /// Readable when a keeper has ended.
  int fd() const { return ends_.get(); }
  /// What has come of it all: operations to be applied, for jobs whose last process is gone; a few of them, so that
  /// whoever asks for something meanwhile does not wait for all. Given again, a second later, until rest() or forget()
  /// says that they were.
  std::vector<pool::Operation> step(double now_s);
  /// The agent has heard nothing for so long, as where the database kept it: whoever had to say something meanwhile has
  /// that much longer for it, a minute in all. Time limits stay.
  void postpone(double seconds);
  /// When step() is to be called at the latest.
  double next_s() const { return next_s_; }
  /// What keeps jobs from being held by cgroups; empty where nothing does, or none was started yet.
  const std::string& obstacle() const { return obstacle_; }

 private:
  static constexpr double kMostPostponed_s = 60;  ///< so that who keeps an agent busy does not run for ever
  struct Hold {
    process::ProcessId keeper;
    Fd keeper_end;  ///< its pidfd
    bool runs = false;
    std::string cgroup;                    ///< empty: none
    std::vector<std::string> further;      ///< in other trees
    int64_t memory_bytes = 0;              ///< that it may have of the host; 0: no limit
    std::vector<process::ProcessId> seen;  ///< without a cgroup: what descended from the keeper
    double looked_s = -kNever_s;           ///< when the look was begun that has seen them
    double over_s = kNever_s;              ///< since when it is to end: its keeper is gone, or has said so
    std::vector<confine::DeviceNode> nodes;
    std::optional<pool::Operation> word;
    double said_at_s = 0, word_at_s = 0;  ///< when it came, and when it came or was given last
    double kill_at_s = kNever_s;
    double postponed_s = 0;            ///< by how much in all
    double killed_since_s = kNever_s;  ///< when the first of its processes was
    double seen_s = 0;             ///< it has ended since then, on the wall clock; 0: it runs until it is seen to end
    double told_until_s = 0;       ///< until when its keeper may say when that was
    double limit_at_s = kNever_s;  ///< when the time limit asks the job to end, and then kill_at_s follows
    double grace_s = 0;
    double again_s = 0;     ///< when what has come of it is given again
    bool is_asked = false;  ///< to end, by a user or for another job
    std::string kill_why;
  };
  void watch(int64_t job, Hold& hold);
  void unwatch(int64_t job, Hold& hold);
  void attend(int64_t job, const Hold& hold);
  void set_limit(const pool::Job& job, Hold& hold, double now_s);
  static bool has_others(const Hold& hold);
  void look_around(double now_s);
  static void take_note(Hold& hold, const process::TreeScan& scan, double begun_s);
  static void kill_others(Hold& hold, bool is_kept, double now_s);
  std::optional<pool::Operation> step_one(int64_t job, Hold& hold, double now_s);
  void leave_cgroup(Hold& hold);
  bool drain_ends();
  static std::string end_of(const Hold& hold);
  static pool::Operation with_facts(pool::Operation word, const Hold& hold, double now_s);

  const std::string pool_;
  Fd ends_;  ///< epoll of the pidfds
  const size_t most_watched_;
  size_t watched_ = 0;  ///< keepers with a pidfd; the others are looked at each second
  std::map<int64_t, Hold> holds_;
  std::set<int64_t> attended_;             ///< that run, or whose keeper's end is not reported: others may be thousands
  int64_t stepped_ = 0;                    ///< the job that step() looked at last
  LeftCgroups left_;                       ///< of jobs that have ended: their keepers may still be there
  std::optional<process::TreeScan> scan_;  ///< of /proc, for jobs without a cgroup; under way
  double scanned_s_ = -kNever_s;           ///< when the last was begun
  double next_s_ = kNever_s;
  std::string obstacle_;
};

}  // namespace remuda::agent

// Revival: starts the keepers of waiting jobs again that have lost theirs, as by a restart of the machine.
//
// What it starts is a fixed command, as the job's user; what that runs is kept in the user's own folder and not here
// (cli/jobs/kept_line.h). It has done its work once the job has a keeper again (pool::TakeOver).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "pool/job.h"
#include "process/child.h"

namespace remuda::agent {

/// One thread. Times are those of the steady clock.
class Revival {
 public:
  /// Starts the command for a job; it ends once the job has a keeper, or where that cannot be.
  using Start = std::function<Result<process::ChildProcess>(const pool::Job&)>;
  /// Where `start` is nothing, no job gets a keeper this way.
  explicit Revival(Start start) : start_(std::move(start)) {}

  /// The job waits without a keeper.
  void add(const pool::Job& job);
  /// It has one, or has ended. Until then it is not forgotten.
  void remove(int64_t job);

  struct GivenUp {
    int64_t job = 0;
    std::string why;
  };
  /// Starts some, one at a time of each user and users in turns, and a job's again after a while. Returns those for
  /// which that was of no use several times; again after a while, until they are removed.
  std::vector<GivenUp> step(double now_s);
  /// When step() is to be called at the latest.
  double next_s() const { return next_s_; }

 private:
  struct Attempt {
    pool::Job job;
    bool is_wanted = true;  ///< the job has no keeper
    double not_before_s = 0;
    int failures = 0;
    std::string why;
  };
  struct Started {
    process::ChildProcess process;
    int64_t job = 0;
    double until_s = 0;       ///< it takes too long then
    bool has_worked = false;  ///< the job had a keeper since
    std::string said;
  };
  bool has_ended(Started& started, double now_s);
  void begin(Attempt& attempt, double now_s);
  std::map<int, Attempt*> next_of_users(double now_s);

  Start start_;
  std::map<int64_t, Attempt> attempts_;
  std::map<int, Started> started_;  ///< by user
  int last_user_ = 0;               ///< whose turn it was
  double next_s_ = kNever_s;
};

/// As the agent at this socket does it: as the job's user, by runuser(1), with the groups and limits that PAM gives
/// them; without root, for its own user alone. What is started has a small environment, and nothing of the agent's.
/// `program` is this one's file, by a path at which there is a newer one after an upgrade.
Revival::Start reviver_at(const std::string& socket, const std::vector<std::string>& machine,
                          const std::string& program);

}  // namespace remuda::agent

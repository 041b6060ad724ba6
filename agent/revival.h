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
  /// Starts the command for a job; it ends once the job has a keeper, with a status other than 0 where that cannot be.
  using Start = std::function<Result<process::ChildProcess>(const pool::Job&)>;
  /// Where `start` is nothing, no job gets a keeper this way.
  explicit Revival(Start start) : start_(std::move(start)) {}

  /// The job waits without a keeper.
  void add(const pool::Job& job);
  /// It has one, or has ended.
  void remove(int64_t job);

  struct GivenUp {
    int64_t job = 0;
    std::string why;
  };
  /// Starts some, not all at once, and a job's again after a while; returns those for which that was of no use several
  /// times.
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
    double since_s = 0;
    std::string said;
  };
  bool has_ended(int64_t job, Started& started, double now_s);
  void begin(int64_t job, Attempt& attempt, double now_s);

  Start start_;
  std::map<int64_t, Attempt> attempts_;
  std::map<int64_t, Started> started_;
  double next_s_ = kNever_s;
};

/// As the agent at this socket does it: as the job's user, by runuser(1), with the groups and limits that PAM gives
/// them; without root, for its own user alone.
Revival::Start reviver_at(const std::string& socket, const std::vector<std::string>& machine);

}  // namespace remuda::agent

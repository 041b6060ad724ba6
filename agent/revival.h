// Revival: starts keepers for jobs without one: a job that waits in the background has none, and gets it once it is
// granted its devices.
//
// What it starts is a fixed command, as the job's user; what that runs is kept in the user's own folder and not here
// (cli/jobs/kept_line.h). It has done its work once the job has a keeper again (pool::TakeOver).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
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

  /// The job is to have a keeper.
  void add(const pool::Job& job);
  /// It has one, or needs none any more. Until then it is not forgotten.
  void remove(int64_t job);
  /// Whether one was started for it just now: the next is started later.
  bool has_tried(int64_t job, double now_s) const;

  struct GivenUp {
    int64_t job = 0;
    std::string why;
  };
  /// Starts some, those that have failed least first and users in turns, and a job's again after a while. Of each user
  /// one at a time until that has worked, then twice as many each time, but never all that may be started at once; one
  /// that fails, and it is one again. Each has more time than at the try before, unless one that has failed less waits
  /// for its place. Returns those for which that was of no use several times; again after a while, until they are
  /// removed.
  std::vector<GivenUp> step(double now_s);
  /// The jobs for which an attempt has failed since the last call.
  std::vector<int64_t> take_failed() { return std::exchange(failed_, {}); }
  /// When step() is to be called at the latest.
  double next_s() const { return next_s_; }

 private:
  struct Attempt {
    pool::Job job;
    bool is_wanted = true;  ///< the job is to have a keeper
    double not_before_s = 0;
    int failures = 0;
    std::string why;
  };
  struct Started {
    process::ChildProcess process;
    int64_t job = 0;
    int user = 0;
    double begun_s = 0;
    double until_s = 0;       ///< it takes too long then
    bool has_worked = false;  ///< the job had a keeper since
    std::string said;
  };
  bool has_ended(Started& started, double now_s);
  void fail(Attempt& attempt, std::string why);
  void begin(Attempt& attempt, double now_s);
  int starting_for(int user) const;
  int room_of(int user) const;
  bool has_room_for(const Attempt& attempt, double now_s);
  std::map<int, std::vector<Attempt*>> due_of_users(double now_s);
  std::vector<Attempt*> in_turn(double now_s);

  Start start_;
  std::map<int64_t, Attempt> attempts_;
  std::list<Started> started_;  ///< none of which can be moved
  std::map<int, int> at_once_;  ///< by user: how many may be started; one where he is not in it
  std::vector<int64_t> failed_;
  int last_user_ = 0;  ///< whose turn it was
  double next_s_ = kNever_s;
};

/// As the agent at this socket does it: as the job's user, by runuser(1), with the groups and limits that PAM gives
/// them; without root, for its own user alone. What is started has a small environment, and nothing of the agent's.
/// `program` is this one's file, by a path at which there is a newer one after an upgrade.
Revival::Start reviver_at(const std::string& socket, const std::vector<std::string>& machine,
                          const std::string& program);

}  // namespace remuda::agent

// TaskQueue: which task runs next, and on which device. Pure: it starts nothing and reads no clock.
//
// A device that has finished a task takes the next one, so faster devices take more. A task that failed and may be
// tried again goes to the end of the queue, and runs on the device that is free then.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "process/child.h"
#include "run/task_list.h"

namespace remuda::run {

/// Tasks and devices are identified by their index in their lists.
class TaskQueue {
 public:
  struct Rules {
    int retries = 0;            ///< of each task, at most so many
    std::vector<int> retry_on;  ///< only after these exit codes; empty: after each failure
    bool fail_fast = false;     ///< a failed task closes the queue
  };
  struct Assignment {
    size_t task, device;
  };
  struct Failure {
    size_t task;
    process::ExitState state;
  };
  /// What a device has done so far; tries that failed count, too.
  struct Tally {
    std::string device;
    int tasks = 0;
    double seconds = 0;
  };

  TaskQueue(size_t tasks, Rules rules);

  /// From here on these devices are used, all idle at first. Tasks that were stopped by close() come first again.
  void open(const std::vector<std::string>& devices);
  /// The task to start now, on the first idle device; nothing where no device is idle, no task is left, or the queue is
  /// closed.
  std::optional<Assignment> next();
  /// To be called when the task on that device has ended. One that fails after close() counts as stopped, not as
  /// failed.
  void ended(size_t device, const process::ExitState& state, double seconds);
  /// Starts no more tasks.
  void close() { closed_ = true; }

  /// No task runs, and none will.
  bool over() const { return running_ == 0 && (closed_ || waiting_.empty()); }
  /// A task has failed, and Rules::fail_fast ends the others.
  bool is_failing() const { return rules_.fail_fast && !failures_.empty(); }
  /// Nothing where all tasks succeeded; otherwise how the first task that failed ended, in order of time; else the
  /// first that was stopped; else, where some were never started, SIGTERM.
  std::optional<process::ExitState> trouble() const;

  size_t total() const { return total_; }
  size_t done() const { return done_; }
  size_t running() const { return running_; }
  size_t waiting() const { return waiting_.size(); }
  size_t stopped() const { return stopped_.size(); }
  const std::vector<Failure>& failures() const { return failures_; }
  const std::vector<Tally>& tallies() const { return tallies_; }

 private:
  struct Slot {
    size_t tally;
    std::optional<size_t> task;
  };
  bool may_retry(size_t task, const process::ExitState& state) const;
  size_t tally_of(const std::string& device);

  const size_t total_;
  const Rules rules_;
  std::deque<size_t> waiting_;
  std::vector<Slot> slots_;
  std::vector<size_t> stopped_;
  std::optional<process::ExitState> first_stop_;
  std::vector<Failure> failures_;
  std::vector<Tally> tallies_;
  std::map<size_t, int> retries_;  ///< of those that failed
  size_t done_ = 0, running_ = 0;
  bool closed_ = false;
};

/// "1 of 4 done, 2 at work", and how many have failed.
std::string progress_text(const TaskQueue& queue);
/// "5 tasks done, 1 failed (line 3: status 7), 2 not started; gpu:0 4 of 1.2 s each, gpu:1 2 of 2.5 s each"; of the
/// failed ones the first ten.
std::string summary_text(const TaskQueue& queue, const std::vector<Task>& tasks);

}  // namespace remuda::run

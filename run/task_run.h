// TaskRun: the tasks of a job under way on its devices: starts what is next, and takes note of how it ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/crew.h"
#include "run/task_queue.h"

namespace remuda::run {

/// For one run of the job; one thread. What is passed by reference outlives it.
class TaskRun {
 public:
  /// Hears how far it has come (0 to 1), and with less than 0 what the user should know.
  using Tell = std::function<void(const std::string& text, double progress)>;

  /// `slots`: for each device what its tasks have in common; `devices`: their names for people.
  TaskRun(const TaskList& list, TaskQueue& queue, std::vector<process::ProcessSpec> slots,
          const std::vector<std::string>& devices, Tell tell);

  /// To be called before the first wait and after each: whoever has ended makes room for the next.
  void step(Crew& crew);
  /// Starts nothing any more.
  void close() { queue_.close(); }

  /// Nothing while tasks are left, unless one has failed and the others are to end.
  std::optional<process::ExitState> result() const;
  /// When step() has something to tell, on the steady clock; infinite: not before a task has ended.
  double wake_at_s() const { return tell_at_s_; }

 private:
  struct Slot {
    process::ProcessSpec process;
    int pid = 0;
    double started_s = 0;
  };
  void start(Crew& crew, const TaskQueue::Assignment& assignment);
  void tell_progress();

  const TaskList& list_;
  TaskQueue& queue_;
  std::vector<Slot> slots_;
  Tell tell_;
  double told_s_ = 0, tell_at_s_;
  bool has_complained_ = false;  ///< about a command that cannot be started; the next ones are like it
};

}  // namespace remuda::run

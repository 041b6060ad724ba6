// TaskRun: runs the tasks of a job on its devices: starts the next one, and records how each ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/job_processes.h"
#include "run/task_queue.h"

namespace remuda::run {

/// For one run of the job; one thread. What is passed by reference outlives it.
class TaskRun {
 public:
  /// Receives the progress (0 to 1) as text; with `progress` below 0 a note to the user.
  using OnProgress = std::function<void(const std::string& text, double progress)>;

  /// `slots`: for each device, the part of the process spec that its tasks share; `devices`: their names for people.
  TaskRun(const TaskList& list, TaskQueue& queue, std::vector<process::ProcessSpec> slots,
          const std::vector<std::string>& devices, OnProgress report);

  /// To be called before the first wait and after each: starts the next task on each device whose task has ended.
  void step(JobProcesses& processes);
  /// Starts nothing any more.
  void close() { queue_.close(); }

  /// Nothing while tasks are left, unless one has failed and the others are to end.
  std::optional<process::ExitState> result() const;
  /// When step() will next report progress, on the steady clock; infinite: not before a task has ended.
  double wake_at_s() const { return next_report_s_; }

 private:
  struct Slot {
    process::ProcessSpec process;
    int pid = 0;
    double started_s = 0;
  };
  void start(JobProcesses& processes, const TaskQueue::Assignment& assignment);
  void report_progress();

  const TaskList& list_;
  TaskQueue& queue_;
  std::vector<Slot> slots_;
  OnProgress report_;
  double last_report_s_ = 0, next_report_s_;
  bool has_complained_ = false;  ///< about a command that cannot be started; reported only once
};

}  // namespace remuda::run

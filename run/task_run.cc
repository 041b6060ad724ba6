#include "run/task_run.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "base/env.h"

namespace remuda::run {
namespace {

constexpr double kReportEvery_s = 0.2;

}  // namespace

TaskRun::TaskRun(const TaskList& list, TaskQueue& queue, std::vector<process::ProcessSpec> slots,
                 const std::vector<std::string>& devices, OnProgress report)
    : list_(list), queue_(queue), report_(std::move(report)), next_report_s_(kNever_s) {
  for (process::ProcessSpec& process : slots) slots_.push_back({std::move(process)});
  queue_.open(devices);
}

void TaskRun::step(JobProcesses& processes) {
  bool has_changed = false;
  for (const JobProcesses::End& end : processes.take_ended()) {
    const auto slot = std::ranges::find(slots_, end.pid, &Slot::pid);
    if (slot == slots_.end()) continue;
    slot->pid = 0;
    if (end.state.signal == SIGINT) queue_.close();  // as a shell ends its loop: the user pressed Ctrl-C
    queue_.ended(static_cast<size_t>(slot - slots_.begin()), end.state, monotonic_s() - slot->started_s);
    has_changed = true;
  }
  while (const auto assignment = queue_.next()) {
    start(processes, *assignment);
    has_changed = true;
  }
  if (has_changed) next_report_s_ = std::min(next_report_s_, last_report_s_ + kReportEvery_s);
  if (monotonic_s() >= next_report_s_) report_progress();
}

void TaskRun::start(JobProcesses& processes, const TaskQueue::Assignment& assignment) {
  Slot& slot = slots_.at(assignment.device);
  process::ProcessSpec process = slot.process;
  process.argv = list_.argv(assignment.task);
  process.environment.emplace_back(env::job_task.name, std::to_string(assignment.task));
  slot.started_s = monotonic_s();
  if (const auto started = processes.add(process)) {
    slot.pid = processes.processes().back().pid;
  } else {
    // If one process cannot be created, the next ones cannot either; a missing command is an error of its task only.
    if (started.error().status == process::kOwnFailure) queue_.close();
    queue_.ended(assignment.device, {started.error().status, 0}, 0);
    if (!std::exchange(has_complained_, true))
      report_(fmt::format("line {}: {}", list_.tasks[assignment.task].line, started.error().sentence), -1);
  }
}

void TaskRun::report_progress() {
  last_report_s_ = monotonic_s();
  next_report_s_ = kNever_s;
  const size_t ended = queue_.done() + queue_.failures().size();
  report_(progress_text(queue_), static_cast<double>(ended) / static_cast<double>(queue_.total()));
}

std::optional<process::ExitState> TaskRun::result() const {
  const auto trouble = queue_.trouble();
  if (queue_.over()) return trouble.value_or(process::ExitState{});
  return queue_.is_failing() ? trouble : std::nullopt;
}

}  // namespace remuda::run

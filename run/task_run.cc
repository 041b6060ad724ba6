#include "run/task_run.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "base/env.h"

namespace remuda::run {
namespace {

constexpr double kTellEvery_s = 0.2;

}  // namespace

TaskRun::TaskRun(const TaskList& list, TaskQueue& queue, std::vector<process::ProcessSpec> slots,
                 const std::vector<std::string>& devices, Tell tell)
    : list_(list), queue_(queue), tell_(std::move(tell)), tell_at_s_(kNever_s) {
  for (process::ProcessSpec& process : slots) slots_.push_back({std::move(process)});
  queue_.open(devices);
}

void TaskRun::step(Crew& crew) {
  bool has_changed = false;
  for (const Crew::End& end : crew.take_ended()) {
    const auto slot = std::ranges::find(slots_, end.pid, &Slot::pid);
    if (slot == slots_.end()) continue;
    slot->pid = 0;
    if (end.state.signal == SIGINT) queue_.close();  // as a shell ends its loop: the user pressed Ctrl-C
    queue_.ended(static_cast<size_t>(slot - slots_.begin()), end.state, monotonic_s() - slot->started_s);
    has_changed = true;
  }
  while (const auto assignment = queue_.next()) {
    start(crew, *assignment);
    has_changed = true;
  }
  if (has_changed) tell_at_s_ = std::min(tell_at_s_, told_s_ + kTellEvery_s);
  if (monotonic_s() >= tell_at_s_) tell_progress();
}

void TaskRun::start(Crew& crew, const TaskQueue::Assignment& assignment) {
  Slot& slot = slots_.at(assignment.device);
  process::ProcessSpec process = slot.process;
  process.argv = list_.argv(assignment.task);
  process.environment.emplace_back(env::job_task.name, std::to_string(assignment.task));
  slot.started_s = monotonic_s();
  if (const auto started = crew.add(process)) {
    slot.pid = crew.processes().back().pid;
  } else {
    // If one process cannot be created, the next ones cannot either; a missing command is an error of its task only.
    if (started.error().status == process::kOwnFailure) queue_.close();
    queue_.ended(assignment.device, {started.error().status, 0}, 0);
    if (!std::exchange(has_complained_, true))
      tell_(fmt::format("line {}: {}", list_.tasks[assignment.task].line, started.error().sentence), -1);
  }
}

void TaskRun::tell_progress() {
  told_s_ = monotonic_s();
  tell_at_s_ = kNever_s;
  const size_t ended = queue_.done() + queue_.failures().size();
  tell_(progress_text(queue_), static_cast<double>(ended) / static_cast<double>(queue_.total()));
}

std::optional<process::ExitState> TaskRun::result() const {
  const auto trouble = queue_.trouble();
  if (queue_.over()) return trouble.value_or(process::ExitState{});
  return queue_.is_failing() ? trouble : std::nullopt;
}

}  // namespace remuda::run

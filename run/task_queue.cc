#include "run/task_queue.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <numeric>

#include "process/spawn.h"

namespace remuda::run {
namespace {

std::string state_text(const process::ExitState& state) {
  return state.signal > 0 ? fmt::format("signal {}", state.signal) : fmt::format("status {}", state.status);
}

/// The mean time of each of the device's tasks.
std::string time_text(const TaskQueue::Tally& tally) {
  constexpr double kFine_s = 10;
  const double seconds = tally.seconds / tally.tasks;
  const char* each = tally.tasks > 1 ? " each" : "";
  return seconds < kFine_s ? fmt::format(" of {:.2f} s{}", seconds, each)
                           : fmt::format(" of {:.0f} s{}", seconds, each);
}

std::string failures_text(const std::vector<TaskQueue::Failure>& failures, const std::vector<Task>& tasks) {
  constexpr size_t kMost = 10;
  std::string text;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (i == kMost) return text + ", ...";
    text += fmt::format("{}line {}: {}", i == 0 ? "" : ", ", tasks.at(failures[i].task).line,
                        state_text(failures[i].state));
  }
  return text;
}

}  // namespace

TaskQueue::TaskQueue(size_t tasks, Rules rules) : total_(tasks), rules_(std::move(rules)), waiting_(tasks) {
  std::iota(waiting_.begin(), waiting_.end(), size_t{0});
}

size_t TaskQueue::tally_of(const std::string& device) {
  const auto known = std::ranges::find(tallies_, device, &Tally::device);
  if (known != tallies_.end()) return static_cast<size_t>(known - tallies_.begin());
  tallies_.push_back({device});
  return tallies_.size() - 1;
}

void TaskQueue::open(const std::vector<std::string>& devices) {
  slots_.clear();
  for (const std::string& device : devices) slots_.push_back({tally_of(device), std::nullopt});
  waiting_.insert(waiting_.begin(), stopped_.begin(), stopped_.end());
  stopped_.clear();
  first_stop_.reset();
  closed_ = is_failing();
}

std::optional<TaskQueue::Assignment> TaskQueue::next() {
  const auto idle = std::ranges::find_if(slots_, [](const Slot& slot) { return !slot.task; });
  if (closed_ || waiting_.empty() || idle == slots_.end()) return std::nullopt;
  idle->task = waiting_.front();
  waiting_.pop_front();
  ++running_;
  return Assignment{*idle->task, static_cast<size_t>(idle - slots_.begin())};
}

bool TaskQueue::may_retry(size_t task, const process::ExitState& state) const {
  const auto tried = retries_.find(task);
  if ((tried == retries_.end() ? 0 : tried->second) >= rules_.retries) return false;
  return rules_.retry_on.empty() || std::ranges::find(rules_.retry_on, exit_code(state)) != rules_.retry_on.end();
}

void TaskQueue::ended(size_t device, const process::ExitState& state, double seconds) {
  Slot& slot = slots_.at(device);
  const size_t task = slot.task.value();
  slot.task.reset();
  --running_;
  ++tallies_[slot.tally].tasks;
  tallies_[slot.tally].seconds += seconds;
  if (state.ok()) {
    ++done_;
  } else if (closed_) {
    stopped_.push_back(task);
    if (!first_stop_) first_stop_ = state;
  } else if (may_retry(task, state)) {
    ++retries_[task];
    waiting_.push_back(task);
  } else {
    failures_.push_back({task, state});
    closed_ = is_failing();
  }
}

std::optional<process::ExitState> TaskQueue::trouble() const {
  if (!failures_.empty()) return failures_.front().state;
  if (first_stop_) return first_stop_;
  return waiting_.empty() ? std::nullopt : std::optional(process::ExitState{0, SIGTERM});
}

std::string progress_text(const TaskQueue& queue) {
  std::string text = fmt::format("{} of {} tasks done, {} at work", queue.done(), queue.total(), queue.running());
  if (!queue.failures().empty()) text += fmt::format(", {} failed", queue.failures().size());
  return text;
}

std::string summary_text(const TaskQueue& queue, const std::vector<Task>& tasks) {
  std::string text = fmt::format("{} {} done", queue.done(), queue.done() == 1 ? "task" : "tasks");
  text += fmt::format(", {} failed", queue.failures().size());
  if (!queue.failures().empty()) text += fmt::format(" ({})", failures_text(queue.failures(), tasks));
  if (queue.stopped() > 0) text += fmt::format(", {} stopped", queue.stopped());
  if (queue.waiting() > 0) text += fmt::format(", {} not started", queue.waiting());
  std::string separator = "; ";
  for (const auto& tally : queue.tallies()) {
    text += separator + fmt::format("{} {}", tally.device, tally.tasks);
    if (tally.tasks > 0) text += time_text(tally);
    separator = ", ";
  }
  return text;
}

}  // namespace remuda::run

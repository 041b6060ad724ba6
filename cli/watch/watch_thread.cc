#include "cli/watch/watch_thread.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace remuda::cli {

WatchThread::WatchThread(MachineFlags flags, std::string folder, ReportFlags reports,
                         std::function<void(const WatchLoop&)> after_each)
    : flags_(std::move(flags)),
      folder_(std::move(folder)),
      reports_(std::move(reports)),
      after_each_(std::move(after_each)),
      thread_([this] { work(); }) {}

WatchThread::~WatchThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<void> WatchThread::step() {
  if (!loop_) {
    REMUDA_ASSIGN(loop_, WatchLoop::open(flags_, folder_, false));
  }
  REMUDA_TRY(loop_->step());
  if (after_each_) after_each_(*loop_);
  return {};
}

void WatchThread::work() {
  std::unique_lock lock(mutex_);
  AlertReports reports(reports_, "remuda web", false);  // here: its commands end with this thread
  double next_s = monotonic_s();
  while (!ends_) {
    outcome_ = step();
    if (loop_ && loop_->keeps()) reports.take(loop_->alerts(), monotonic_s(), wall_s());
    changed_.notify_all();
    constexpr double kLeastRest_s = 0.1;  // those who look have their turn, however long a step takes
    next_s = std::max(next_s + WatchLoop::kEvery_s, monotonic_s() + kLeastRest_s);
    changed_.wait_for(lock, std::chrono::duration<double>(next_s - monotonic_s()), [this] { return ends_; });
  }
  if (loop_) (void)loop_->end();
  loop_.reset();  // here: what reads the machine belongs to this thread
}

Result<void> WatchThread::look(const std::function<Result<void>(WatchLoop&)>& use) {
  constexpr std::chrono::seconds kPatience{5};
  std::unique_lock lock(mutex_, kPatience);
  if (lock) changed_.wait_for(lock, kPatience, [this] { return outcome_ || ends_; });
  if (!lock || !outcome_) return failed("the machine does not answer");
  REMUDA_TRY(*outcome_);
  return use(*loop_);
}

}  // namespace remuda::cli

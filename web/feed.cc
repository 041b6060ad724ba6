#include "web/feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace remuda::web {
namespace {

std::chrono::duration<double> seconds(double count) { return std::chrono::duration<double>(count); }

}  // namespace

Feed::Feed(snapshot::Source& source, double period_s)
    : source_(source), period_s_(period_s), taken_s_(-kNever_s), thread_([this] { work(); }) {}

Feed::~Feed() {
  stop();
  thread_.join();
}

std::shared_ptr<const Frame> Feed::next(uint64_t seen, double patience_s) {
  const double deadline_s = monotonic_s() + patience_s;
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    const double now_s = monotonic_s(), fresh_until_s = taken_s_ + period_s_;
    const bool is_fresh = now_s < fresh_until_s;
    if (is_fresh && frame_->id != seen) return frame_;
    if (now_s >= deadline_s) return nullptr;
    if (!is_fresh && !std::exchange(is_wanted_, true)) wanted_.notify_one();
    changed_.wait_for(lock, seconds(std::min(is_fresh ? fresh_until_s : kNever_s, deadline_s) - now_s));
  }
  return nullptr;
}

void Feed::stop() {
  const std::scoped_lock lock(mutex_);
  is_stopped_ = true;
  wanted_.notify_all();
  changed_.notify_all();
}

void Feed::work() {
  for (std::unique_lock lock(mutex_);;) {
    wanted_.wait(lock, [this] { return is_wanted_ || is_stopped_; });
    if (is_stopped_) return;
    lock.unlock();
    const auto snapshot = source_.snapshot();
    std::string text = to_line(snapshot ? *snapshot : Json{{"version", 1}, {"error", snapshot.error().message}});
    lock.lock();
    is_wanted_ = false;
    taken_s_ = monotonic_s();
    if (!frame_ || frame_->text != text)
      frame_ = std::make_shared<const Frame>(Frame{frame_ ? frame_->id + 1 : 1, std::move(text)});
    changed_.notify_all();
  }
}

}  // namespace remuda::web

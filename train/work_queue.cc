#include "train/work_queue.h"

#include "profile/recorder.h"
#include "train/error_text.h"

namespace remuda::train {

namespace {

/// A device that is lost throws from whatever call finds out.
Result<void> outcome_of(const WorkQueue::Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return failed(sentence_of(error));
  }
}

}  // namespace

WorkQueue::WorkQueue(const char* track)
    : thread_([this, track, recorder = profile::recorder_here()] {
        const profile::Join join(recorder, track);
        run();
      }) {}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t WorkQueue::push(Work work) {
  const std::lock_guard lock(mutex_);
  if (!outcome_) return pushed_;
  waiting_.push_back(std::move(work));
  changed_.notify_all();
  return ++pushed_;
}

bool WorkQueue::is_done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return has_ended(number);
}

Result<void> WorkQueue::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_ended(number); });
  return outcome_;
}

Result<void> WorkQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
  return outcome_;
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const Work work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    auto done = outcome_of(work);
    lock.lock();
    busy_ = false;
    ++ended_;
    if (!done) {
      outcome_ = std::move(done);
      waiting_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace remuda::train

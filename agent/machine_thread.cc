#include "agent/machine_thread.h"

#include <csignal>
#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>

namespace remuda::agent {

MachineThread::MachineThread(pool::MachineView view)
    : view_(std::move(view)), ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { work(); }) {}

MachineThread::~MachineThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void MachineThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || is_wanted_; });
    if (ends_) return;
    is_wanted_ = false;
    lock.unlock();
    const auto outcome = view_.read();
    auto read = std::make_unique<Result<pool::MachineView>>(outcome ? Result<pool::MachineView>(view_)
                                                                    : tl::unexpected(outcome.error()));
    lock.lock();
    read_ = std::move(read);
    const uint64_t one = 1;
    (void)!::write(ready_.get(), &one, sizeof one);
  }
}

void MachineThread::ask() {
  const std::lock_guard lock(mutex_);
  is_wanted_ = true;
  changed_.notify_one();
}

std::unique_ptr<Result<pool::MachineView>> MachineThread::take() {
  uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::move(read_);
}

}  // namespace remuda::agent

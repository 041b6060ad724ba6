#include "top/poller.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace remuda::top {

Result<std::unique_ptr<Poller>> Poller::start(snapshot::Source& source, Range range, double every_s) {
  Fd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news) return failed(fmt::format("cannot wait for readings: {}", errno_text(errno)));
  return std::unique_ptr<Poller>(new Poller(source, range, every_s, std::move(news)));
}

Poller::Poller(snapshot::Source& source, Range range, double every_s, Fd news)
    : source_(source), every_s_(every_s), news_(std::move(news)), range_(range), thread_([this] { work(); }) {}

Poller::~Poller() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<const Picture> Poller::picture() {
  uint64_t count = 0;
  (void)!::read(news_.get(), &count, sizeof count);
  const std::scoped_lock lock(mutex_);
  return picture_;
}

void Poller::show(Range range) {
  const std::scoped_lock lock(mutex_);
  is_asked_ = is_asked_ || range != range_;
  range_ = range;
  changed_.notify_all();
}

void Poller::work() {
  for (std::unique_lock lock(mutex_); !ends_;) {
    is_asked_ = false;
    const Range range = range_;
    const auto before = picture_;
    lock.unlock();
    auto next = std::make_shared<const Picture>(next_picture(source_, range, *before));
    lock.lock();
    picture_ = std::move(next);
    const uint64_t one = 1;
    (void)!::write(news_.get(), &one, sizeof one);
    changed_.wait_for(lock, std::chrono::duration<double>(every_s_), [this] { return ends_ || is_asked_; });
  }
}

}  // namespace remuda::top

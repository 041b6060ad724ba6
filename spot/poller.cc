#include "spot/poller.h"

#include <chrono>
#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace remuda::spot {

Ask asking(HostPort server) {
  return [server = std::move(server)](const HttpRequest& request) { return ask(server, request, kPatience_s); };
}

Poller::Poller(Watch watch, std::function<void(const std::string&)> say, double every_s)
    : watch_(std::move(watch)),
      say_(std::move(say)),
      every_s_(every_s),
      ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { work(); }) {}

Poller::~Poller() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    ending_.notify_one();
  }
  thread_.join();
}

void Poller::work() {
  for (;;) {
    look();
    std::unique_lock lock(mutex_);
    if (ending_.wait_for(lock, std::chrono::duration<double>(every_s_), [this] { return ends_; })) return;
  }
}

/// A cloud that does not answer has changed nothing: what it has said last holds.
void Poller::look() {
  const auto notice = watch_.look();
  if (notice.has_value() != answers_) say_(notice ? "the cloud answers again" : notice.error().message);
  answers_ = notice.has_value();
  if (!notice || (said_ && said_->notice == *notice)) return;
  said_ = News{*notice};
  const std::lock_guard lock(mutex_);
  news_ = said_;
  const uint64_t one = 1;
  (void)!::write(ready_.get(), &one, sizeof one);
}

std::optional<Poller::News> Poller::take() {
  uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, std::nullopt);
}

}  // namespace remuda::spot

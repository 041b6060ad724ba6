#include "spot/poller.h"

#include <cstdint>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace remuda::spot {
namespace {

/// Makes it readable.
void raise(const Fd& event) {
  const uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

}  // namespace

Ask asking(HostPort server, int stop) {
  return [server = std::move(server), stop](const HttpRequest& request) {
    return ask(server, request, kPatience_s, stop);
  };
}

Poller::Poller(const MakeWatch& make, std::function<void(const std::string&)> say, double every_s)
    : stop_(::eventfd(0, EFD_CLOEXEC)),
      watch_(make(stop_.get())),
      say_(std::move(say)),
      every_s_(every_s),
      ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { work(); }) {}

Poller::~Poller() {
  raise(stop_);
  thread_.join();
}

void Poller::work() {
  for (pollfd stop{stop_.get(), POLLIN, 0};;) {
    look();
    if (::poll(&stop, 1, static_cast<int>(every_s_ * 1000) + 1) > 0) return;
  }
}

/// A cloud that does not answer has changed nothing: what it has said last holds.
void Poller::look() {
  const auto notice = watch_.look();
  if (pollfd stop{stop_.get(), POLLIN, 0}; ::poll(&stop, 1, 0) > 0) return;  // it may have been cut off
  if (notice.has_value() != answers_) say_(notice ? "the cloud answers again" : notice.error().message);
  answers_ = notice.has_value();
  if (!notice || (said_ && said_->notice == *notice)) return;
  if (*notice)
    say_(fmt::format("{}: its devices are drained, and jobs are asked to end", (*notice)->sentence));
  else if (said_)
    say_("the cloud does not take this machine away any more");
  said_ = News{*notice};
  const std::lock_guard lock(mutex_);
  news_ = said_;
  raise(ready_);
}

std::optional<Poller::News> Poller::take() {
  uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, std::nullopt);
}

}  // namespace remuda::spot

#include "comm/streams.h"

#include <algorithm>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>

namespace remuda::comm {
namespace {

// False where the system has no thread for it.
template <typename Body>
bool starts(std::list<std::jthread>& threads, const Body& body, int number) {
  try {
    threads.emplace_back(body, number);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

Streams::Streams(std::vector<std::vector<Link>> links, size_t stripe_bytes, Peers& peers)
    : links_(std::move(links)), stripe_bytes_(std::max<size_t>(1, stripe_bytes)), peers_(peers), sums_(links_.size()) {
  if (links_.size() > 1) stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

Result<void> Streams::run(const Call& call, std::span<const int> ranks, size_t bytes, double deadline_s,
                          const std::function<void(Stripe&)>& fill) {
  const int count = static_cast<int>(std::clamp<size_t>(bytes / stripe_bytes_, 1, links_.size()));
  if (count > 1 && !stop_)
    return failed(fmt::format("rank {} has no descriptor left for an event of its streams", peers_.rank()));
  std::mutex mutex;
  Result<void> result;
  const auto exchange_one = [&](int number) {
    const auto stream = static_cast<size_t>(number);
    Exchange exchange(call, ranks, links_[stream], peers_, count > 1 ? stop_.get() : -1);
    Stripe stripe(exchange, sums_[stream], number, count);
    fill(stripe);
    auto done = exchange.run(deadline_s);
    const std::lock_guard lock(mutex);
    sent_bytes_ += exchange.sent_bytes();
    if (done || !result) return;  // the first failure is the cause of the others
    result = std::move(done);
    if (count > 1) ::eventfd_write(stop_.get(), 1);
  };
  {
    std::list<std::jthread> others;
    int begun = 1;
    while (begun < count && starts(others, exchange_one, begun)) ++begun;
    exchange_one(0);
    while (begun < count) exchange_one(begun++);  // in the order that all ranks have: none waits for one behind it
  }
  return result;
}

bool Streams::encrypted() const { return std::ranges::any_of(links_.front(), &Link::encrypted); }

void Streams::hang_up() const {
  for (const auto& stream : links_)
    for (const Link& link : stream)
      if (link) link.hang_up();
}

}  // namespace remuda::comm

#include "top/poller.h"

#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>

#include "base/clock.h"
#include "snapshot/testing/standin_source.h"

namespace remuda::top {
namespace {

constexpr int kPatience_ms = 20'000;

Json machine(double time_s) {
  const Json device{{"id", "G"}, {"kind", "gpu"}, {"index", 0}, {"status", {{"busy", 0.5}}}};
  const Json inventory{{"version", 1}, {"host", "a"}, {"devices", {device}}};
  return {{"version", 1}, {"time_s", time_s}, {"host", "a"}, {"inventory", inventory}};
}

std::shared_ptr<const Picture> next(Poller& poller) {
  pollfd news{poller.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, kPatience_ms), 1);
  return poller.picture();
}

TEST(TopPoller, GivesWhatTheSourceSays) {
  snapshot::StandinSource source;
  source.set(machine(1000));
  const auto poller = Poller::start(source, Range::hour, 0.01).value();
  const auto picture = next(*poller);
  ASSERT_TRUE(picture->seen);
  EXPECT_EQ(picture->seen->hosts[0].devices[0].label, "gpu:0");
  EXPECT_EQ(picture->histories.at("a/gpu:0").step_s, 10);
}

TEST(TopPoller, KeepsWhatWasSeenWhereTheSourceFails) {
  snapshot::StandinSource source;
  source.set(machine(1000));
  const auto poller = Poller::start(source, Range::hour, 0.01).value();
  next(*poller);
  source.set(failed("the machine does not answer"));
  auto picture = next(*poller);
  while (picture->trouble.empty()) picture = next(*poller);
  EXPECT_TRUE(picture->seen);
  EXPECT_EQ(picture->trouble, "the machine does not answer");
  source.set(machine(1001));
  while (!picture->trouble.empty()) picture = next(*poller);
  EXPECT_EQ(picture->seen->time_s, 1001);
}

TEST(TopPoller, AnotherRangeIsReadAtOnce) {
  snapshot::StandinSource source;
  source.set(machine(1000));
  const auto poller = Poller::start(source, Range::hour, 3600).value();
  next(*poller);
  poller->show(Range::day);
  EXPECT_EQ(next(*poller)->histories.at("a/gpu:0").step_s, 240);
  poller->show(Range::day);
  pollfd news{poller->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, 50), 0) << "the same one again is no reason to ask";
}

/// A source that answers once it is let go.
class SlowSource : public snapshot::StandinSource {
 public:
  Result<Json> snapshot() override {
    std::unique_lock lock(mutex_);
    let_go_.wait(lock, [this] { return is_let_go_; });
    return machine(1000);
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    is_let_go_ = true;
    let_go_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable let_go_;
  bool is_let_go_ = false;
};

TEST(TopPoller, ASlowSourceHoldsUpNobody) {
  SlowSource source;
  const auto poller = Poller::start(source, Range::hour, 0.01).value();
  EXPECT_FALSE(poller->picture()->seen);
  poller->show(Range::week);
  EXPECT_FALSE(poller->picture()->seen);
  source.let_go();
  EXPECT_TRUE(next(*poller)->seen);
}

}  // namespace
}  // namespace remuda::top

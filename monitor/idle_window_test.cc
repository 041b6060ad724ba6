#include "monitor/idle_window.h"

#include <functional>
#include <gtest/gtest.h>

namespace remuda::monitor {
namespace {

constexpr double kLength_s = 1800;

/// A reading each `every_s`, by the seconds since the first one.
IdleWindow watched(double seconds, const std::function<Seen(double)>& seen, double every_s = 10) {
  IdleWindow window(kLength_s);
  for (double s = 0; s <= seconds; s += every_s) window.add(5000 + s, seen(s));
  return window;
}

IdleReason reason(const Seen& seen) {
  return watched(kLength_s, [&](double) { return seen; }).reason();
}

TEST(IdleWindow, IsWholeAfterItsLength) {
  EXPECT_FALSE(watched(kLength_s - 10, [](double) { return Seen{.busy = 0}; }).is_whole());
  EXPECT_LT(watched(kLength_s - 10, [](double) { return Seen{.busy = 0}; }).busy(), 0);
  EXPECT_EQ(watched(kLength_s, [](double) { return Seen{.busy = 0}; }).busy(), 0);
}

TEST(IdleWindow, IsTheMeanOfItsTime) {
  const auto bursts = [](double s) { return Seen{.busy = static_cast<int>(s) % 100 == 0 ? 1.0 : 0.0}; };
  EXPECT_NEAR(watched(3 * kLength_s, bursts).busy(), 0.1, 0.01) << "one that works briefly, again and again";
  const auto stopped = [](double s) { return Seen{.busy = s < kLength_s ? 1.0 : 0.0}; };
  EXPECT_NEAR(watched(kLength_s * 1.5, stopped).busy(), 0.5, 0.04);
  EXPECT_EQ(watched(kLength_s * 2.1, stopped).busy(), 0) << "what was before has left it";
}

TEST(IdleWindow, IsUnknownWhereMostOfItIs) {
  EXPECT_LT(watched(kLength_s, [](double) { return Seen{}; }).busy(), 0);
  EXPECT_LT(watched(kLength_s, [](double s) { return Seen{.busy = s < 600 ? 0.0 : -1.0}; }).busy(), 0);
  EXPECT_EQ(watched(kLength_s, [](double s) { return Seen{.busy = s < 1200 ? 0.0 : -1.0}; }).busy(), 0);
}

TEST(IdleWindow, MayHaveFewerReadingsThanParts) {
  IdleWindow window(10);
  for (double s = 0; s <= 10; ++s) window.add(s, {.busy = 0.5});
  EXPECT_DOUBLE_EQ(window.busy(), 0.5);
}

// Readings whose times drift fall into other parts than those before.
TEST(IdleWindow, ForgetsPartsThatNothingIsWrittenOver) {
  IdleWindow window(10);
  for (double s = 0; s < 10; ++s) window.add(s, {.busy = 1, .processes = 1, .cores = 3});
  for (double s = 10.5; s < 25; ++s) window.add(s, {.busy = 0, .processes = 1, .cores = 0});
  EXPECT_EQ(window.busy(), 0);
  EXPECT_EQ(window.reason(), IdleReason::asleep);
}

TEST(IdleWindow, BeginsAnewAfterAGap) {
  IdleWindow window = watched(kLength_s, [](double) { return Seen{.busy = 0}; });
  window.add(5000 + kLength_s + 170, {.busy = 0});
  EXPECT_TRUE(window.is_whole());
  window.add(5000 + kLength_s + 400, {.busy = 0});
  EXPECT_FALSE(window.is_whole());
  window = watched(kLength_s, [](double) { return Seen{.busy = 0}; });
  window.add(4000, {.busy = 0});
  EXPECT_FALSE(window.is_whole()) << "the clock was set back";
  for (double s = 4010; s <= 4000 + kLength_s; s += 10) window.add(s, {.busy = 0});
  EXPECT_TRUE(window.is_whole());
  window = watched(kLength_s, [](double) { return Seen{.busy = 0}; });
  window.clear();
  EXPECT_FALSE(window.is_whole());
}

TEST(IdleWindow, KnowsTheReason) {
  EXPECT_EQ(reason({.busy = 0}), IdleReason::unknown);
  EXPECT_EQ(reason({.busy = 0, .processes = 0, .cores = 1}), IdleReason::no_process);
  EXPECT_EQ(reason({.busy = 0, .processes = 1, .cores = 0.01}), IdleReason::asleep);
  EXPECT_EQ(reason({.busy = 0, .cores = 0.01}), IdleReason::asleep) << "where the driver lists no processes";
  EXPECT_EQ(reason({.busy = 0, .cores = 0.01, .hides_input = true}), IdleReason::not_seen) << "they may read";
  EXPECT_EQ(reason({.busy = 0, .cores = 3, .hides_input = true}), IdleReason::waits_for_data);
  EXPECT_EQ(reason({.busy = 0, .processes = 1, .cores = 3}), IdleReason::waits_for_data);
  EXPECT_EQ(reason({.busy = 0, .processes = 1, .cores = 0, .waits_for_input = true}), IdleReason::waits_for_data);
  EXPECT_EQ(reason({.busy = 0, .processes = 1, .cores = 3, .waits_for_peer = true}), IdleReason::waits_for_peer);
}

TEST(IdleWindow, GoesByMostOfTheTime) {
  const auto once = watched(kLength_s, [](double s) {
    return Seen{
        .busy = 0, .processes = 1, .cores = s < 60 ? 0.1 : 0, .waits_for_input = s < 60, .waits_for_peer = s < 60};
  });
  EXPECT_EQ(once.reason(), IdleReason::asleep);
  const auto had_one = watched(kLength_s, [](double s) { return Seen{.processes = s < 60 ? 1 : 0, .cores = 0}; });
  EXPECT_EQ(had_one.reason(), IdleReason::asleep) << "a process has used them, and sleeps between two uses";
}

}  // namespace
}  // namespace remuda::monitor

#include "web/feed.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "snapshot/testing/standin_source.h"

namespace remuda::web {
namespace {

TEST(WebFeed, AsksNobodyUntilSomebodyLooks) {
  snapshot::StandinSource source;
  Feed feed(source, 0.01);
  steady_clock().sleep_s(0.03);
  EXPECT_EQ(source.asked, 0);
}

TEST(WebFeed, ManyViewersAreOneQuestion) {
  snapshot::StandinSource source;
  Feed feed(source, 60);
  std::vector<std::thread> viewers;
  std::atomic<int> served = 0;
  for (int i = 0; i < 20; ++i)
    viewers.emplace_back([&] {
      if (const auto frame = feed.next(0, 10)) served += frame->text == R"({"version":1})" ? 1 : 0;
    });
  for (std::thread& viewer : viewers) viewer.join();
  EXPECT_EQ(served, 20);
  EXPECT_EQ(source.asked, 1);
}

TEST(WebFeed, AViewerHearsOfChangesOnly) {
  snapshot::StandinSource source;
  Feed feed(source, 0.005);
  const auto first = feed.next(0, 10);
  ASSERT_TRUE(first);
  EXPECT_FALSE(feed.next(first->id, 0.05)) << "nothing has changed";
  source.set(Json{{"version", 1}, {"time_s", 2}});
  const auto second = feed.next(first->id, 10);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->text, R"({"version":1,"time_s":2})");
  EXPECT_NE(second->id, first->id);
}

TEST(WebFeed, AnErrorIsAFrameAndPasses) {
  snapshot::StandinSource source;
  source.set(failed("the pool is \"gone\""));
  Feed feed(source, 0.005);
  const auto first = feed.next(0, 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, R"({"version":1,"error":"the pool is \"gone\""})");
  source.set(Json{{"version", 1}});
  EXPECT_TRUE(feed.next(first->id, 10));
}

TEST(WebFeed, StoppingEndsWaits) {
  snapshot::StandinSource source;
  Feed feed(source, 0.005);
  const auto first = feed.next(0, 10);
  std::thread viewer([&] { EXPECT_FALSE(feed.next(first->id, 600)); });
  feed.stop();
  viewer.join();
}

}  // namespace
}  // namespace remuda::web

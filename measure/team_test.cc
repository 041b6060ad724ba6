#include "measure/team.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sched.h>

namespace remuda::measure {
namespace {

TEST(Team, EachThreadDoesItsPartEachTime) {
  Team team({0, 0, 0});
  ASSERT_EQ(team.size(), 3u);
  std::vector<std::atomic<int>> done(3);
  for (int i = 0; i < 5; ++i) team.run([&](size_t part) { ++done[part]; });
  for (const auto& count : done) EXPECT_EQ(count, 5);
}

TEST(Team, StaysOnItsCores) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int last = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) last = core;
  int seen = -1;
  Team team({last});
  team.run([&](size_t) { seen = ::sched_getcpu(); });
  EXPECT_EQ(seen, last);
}

TEST(Team, WithoutCoresIsOneThread) {
  Team team({});
  EXPECT_EQ(team.size(), 1u);
}

TEST(Parts, CoverAllBytesInWholeLines) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{1000}, size_t{1} << 20})
    for (const size_t count : {1, 2, 3, 7}) {
      EXPECT_EQ(part_begin(bytes, 0, count), 0u);
      EXPECT_EQ(part_begin(bytes, count, count), bytes);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_LE(part_begin(bytes, i, count), part_begin(bytes, i + 1, count));
        EXPECT_EQ(part_begin(bytes, i, count) % 64, 0u);
      }
    }
}

}  // namespace
}  // namespace remuda::measure

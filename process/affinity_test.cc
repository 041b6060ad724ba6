#include "process/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace remuda::process {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Affinity, AppliesToTheThreadThatAsks) {
  const std::vector<int> before = allowed_cores();
  ASSERT_THAT(before, testing::Not(IsEmpty()));
  std::vector<int> after;
  std::thread([&] {
    AffinityPlan({{before.back(), 65000, -3}, {0}}).apply();
    after = allowed_cores();
  }).join();
  EXPECT_THAT(after, ElementsAre(before.back()));
  EXPECT_EQ(allowed_cores(), before);
}

}  // namespace
}  // namespace remuda::process

#include "process/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "base/file.h"
#include "process/child.h"

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

TEST(Affinity, BindsAllThreadsOfAProcess) {
  const int last = allowed_cores().back();
  const auto child = ChildProcess::spawn({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(child) << child.error().message;
  bind(child->pid(), {last});
  const auto status = read_text("/proc/" + std::to_string(child->pid()) + "/status");
  EXPECT_THAT(status.value_or(""), testing::HasSubstr("Cpus_allowed_list:\t" + std::to_string(last) + "\n"));
  bind(1 << 30, {last});  // there is none
}

}  // namespace
}  // namespace remuda::process

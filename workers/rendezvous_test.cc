#include "workers/rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::workers {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(Listen, TakesAFreePortAndRefusesOneInUse) {
  const auto first = listen_on_loopback(0);
  ASSERT_TRUE(first);
  EXPECT_GT(first->port, 0);
  const auto second = listen_on_loopback(first->port);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::usage);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("port {}: Address already in use", first->port)));
}

TEST(Secret, IsLongAndNeverTheSame) {
  const auto first = make_secret(), second = make_secret();
  ASSERT_TRUE(first && second);
  EXPECT_THAT(*first, MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace remuda::workers

#include "workers/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::workers {
namespace {

TEST(Secret, IsLongAndNeverTheSame) {
  const auto first = make_secret(), second = make_secret();
  ASSERT_TRUE(first && second);
  EXPECT_THAT(*first, testing::MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace remuda::workers

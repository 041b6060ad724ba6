#include "base/write_again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace remuda {
namespace {

using testing::ElementsAre;

/// A write that fails so often, and the pauses that it was given.
struct FailingWrite {
  int failures = 0, tries = 0;
  ErrorKind kind = ErrorKind::failed;
  std::vector<double> pauses_s;

  Result<void> run() {
    return write_again(
        [this]() -> Result<void> {
          if (tries++ < failures) return tl::unexpected(Error{kind, "no room"});
          return {};
        },
        0.001,
        [this](const Error& error, double pause_s) {
          EXPECT_EQ(error.message, "no room");
          pauses_s.push_back(pause_s);
        });
  }
};

TEST(WriteAgain, WhatSucceedsIsWrittenOnce) {
  FailingWrite write{.failures = 0};
  EXPECT_TRUE(write.run());
  EXPECT_EQ(write.tries, 1);
}

TEST(WriteAgain, WaitsLongerEachTimeUntilItSucceeds) {
  FailingWrite write{.failures = 2};
  EXPECT_TRUE(write.run());
  EXPECT_EQ(write.tries, 3);
  EXPECT_THAT(write.pauses_s, ElementsAre(0.001, 0.002));
}

TEST(WriteAgain, GivesUpWithTheLastError) {
  FailingWrite write{.failures = 100};
  EXPECT_EQ(write.run().error().message, "no room");
  EXPECT_EQ(write.tries, kWriteTries);
  EXPECT_THAT(write.pauses_s, ElementsAre(0.001, 0.002, 0.004));
}

TEST(WriteAgain, DoesNotWaitForARankThatIsLost) {
  FailingWrite write{.failures = 100, .kind = ErrorKind::lost_peer};
  EXPECT_FALSE(write.run());
  EXPECT_EQ(write.tries, 1);
}

TEST(WriteAgain, SaysWhenItTriesAgain) {
  EXPECT_EQ(tries_again_text({ErrorKind::failed, "cannot write a"}, 2), "cannot write a; tries again in 2.0 s");
}

}  // namespace
}  // namespace remuda

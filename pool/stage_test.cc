#include "pool/stage.h"

#include <gtest/gtest.h>

#include "pool/transitions.h"

namespace remuda::pool {
namespace {

TEST(Stage, IsOneWordForWhatAJobIs) {
  EXPECT_EQ(stage_of({.state = JobState::waiting}), Stage::waiting);
  EXPECT_EQ(stage_of({.paused = true, .state = JobState::waiting}), Stage::paused);
  EXPECT_EQ(stage_of({.state = JobState::running}), Stage::running);
  EXPECT_EQ(stage_of({.state = JobState::ended}), Stage::done);
  EXPECT_EQ(stage_of({.state = JobState::ended, .exit_status = 1}), Stage::failed);
  EXPECT_EQ(stage_of({.state = JobState::ended, .cancelled = true}), Stage::cancelled);
}

TEST(Stage, TheExitStatusOfAJobThatDidNotSucceedIsNotZero) {
  EXPECT_EQ(exit_status_of({.state = JobState::ended}), 0);
  EXPECT_EQ(exit_status_of({.state = JobState::ended, .exit_status = 7}), 7);
  EXPECT_EQ(exit_status_of({.state = JobState::ended, .signal = 9}), 137);
  EXPECT_EQ(exit_status_of({.state = JobState::ended, .cancelled = true}), kEndedByRemuda);
}

}  // namespace
}  // namespace remuda::pool

#include "cli/train/run_reporter.h"

#include <gtest/gtest.h>

#include "run/run_board.h"

namespace remuda::cli {
namespace {

Json step(int number, double wait_s) {
  return {{"event", "step"},
          {"step", number},
          {"steps", 100},
          {"shares", {24, 12, 12}},
          {"compute_s", {1.0, 1.0, 1.0}},
          {"wait_s", {0.0, wait_s, 1.0}}};
}

TEST(RunReporter, TellsOfTheRanksThatRunHere) {
  run::RunBoard board;
  RunReporter reporter(board.fd(), {"GPU-1", "GPU-2"}, 1, {});
  reporter.take(step(1, 1), 100);
  EXPECT_EQ(board.read(), (pool::RunNotice{0, 1, 100, 2, {{"GPU-1", 0.25, 0.5}, {"GPU-2", 0.25, 0.5}}}));
  reporter.take(step(2, 1), 101);
  reporter.take({{"event", "epoch"}}, 102);
  EXPECT_FALSE(board.read()) << "not so often";
  reporter.take(step(3, 5), 106);
  const auto notice = board.read();
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->step, 3);
  EXPECT_DOUBLE_EQ(notice->parts[0].waiting, 0.75) << "of both steps since";
}

/// Of checkpoints alone, of a run that is at `step`.
pool::RunNotice kept(RunReporter& reporter, run::RunBoard& board, int number, double now_s) {
  reporter.take(step(number, 0), now_s);
  const auto notice = board.read();
  return {.checkpoint_step = notice->checkpoint_step,
          .checkpoint_age_s = notice->checkpoint_age_s,
          .checkpoint_every_s = notice->checkpoint_every_s};
}

pool::RunNotice checkpoint(int64_t step, double age_s, double every_s) {
  return {.checkpoint_step = step, .checkpoint_age_s = age_s, .checkpoint_every_s = every_s};
}

TEST(RunReporter, TellsHowOldTheLastCheckpointIs) {
  run::RunBoard board;
  RunReporter reporter(board.fd(), {}, 0, {.folder = "kept", .every_minutes = 10});
  reporter.take({{"event", "model"}}, 5);
  EXPECT_EQ(kept(reporter, board, 1, 100), checkpoint(0, 0, 600)) << "its work begins with its first step";
  EXPECT_EQ(kept(reporter, board, 2, 130), checkpoint(0, 30, 600));
  reporter.take({{"event", "checkpoint"}, {"step", 2}, {"failed", "the disk is full"}}, 131);
  EXPECT_EQ(kept(reporter, board, 3, 140), checkpoint(0, 40, 600)) << "that one is none";
  reporter.take({{"event", "checkpoint"}, {"step", 3}, {"failed", ""}}, 150);
  EXPECT_EQ(kept(reporter, board, 5, 180), checkpoint(3, 30, 600));
}

TEST(RunReporter, CountsInTimeWhatIsWantedBySteps) {
  run::RunBoard board;
  RunReporter reporter(board.fd(), {}, 0, {.folder = "kept", .every_steps = 10});
  EXPECT_EQ(kept(reporter, board, 1, 100), checkpoint(0, 0, 0)) << "nobody knows how long a step takes";
  EXPECT_EQ(kept(reporter, board, 6, 120), checkpoint(0, 20, 40));
  reporter.take({{"event", "checkpoint"}, {"step", 6}}, 130);
  EXPECT_EQ(kept(reporter, board, 6, 135), checkpoint(6, 5, 40)) << "as long as those before";
  EXPECT_EQ(kept(reporter, board, 7, 150), checkpoint(6, 20, 200)) << "steps have become slow, which makes none late";
  EXPECT_EQ(kept(reporter, board, 3, 160), checkpoint(6, 30, 200)) << "it has gone back";

  RunReporter both(board.fd(), {}, 0, {.folder = "kept", .every_steps = 10, .every_minutes = 1});
  both.take(step(1, 0), 100);
  EXPECT_EQ(kept(both, board, 6, 120), checkpoint(0, 20, 40)) << "whichever is due first";
  EXPECT_EQ(kept(both, board, 7, 220), checkpoint(0, 120, 60));
}

TEST(RunReporter, TakesWhateverAnEventHas) {
  run::RunBoard board;
  RunReporter reporter(board.fd(), {"GPU-1", "GPU-2"}, 0, {});
  reporter.take({{"event", "step"}, {"compute_s", {nullptr, 1.0}}, {"wait_s", "long"}}, 100);
  reporter.take({{"event", 3}}, 200);
  EXPECT_EQ(board.read(), pool::RunNotice{});
  RunReporter alone(-1, {}, 0, {});
  alone.take(step(1, 1), 100);
}

}  // namespace
}  // namespace remuda::cli

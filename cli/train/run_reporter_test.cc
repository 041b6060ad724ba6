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
  RunReporter reporter(board.fd(), {"GPU-1", "GPU-2"}, 1);
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

TEST(RunReporter, TakesWhateverAnEventHas) {
  run::RunBoard board;
  RunReporter reporter(board.fd(), {"GPU-1", "GPU-2"}, 0);
  reporter.take({{"event", "step"}, {"compute_s", {nullptr, 1.0}}, {"wait_s", "long"}}, 100);
  reporter.take({{"event", 3}}, 200);
  EXPECT_EQ(board.read(), pool::RunNotice{});
  RunReporter alone(-1, {}, 0);
  alone.take(step(1, 1), 100);
}

}  // namespace
}  // namespace remuda::cli

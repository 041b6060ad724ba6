// The balancer on real noise: recorded runs of two CPU devices on a two-core machine on which other users compiled
// meanwhile.

#include "balance/replay.h"

#include <algorithm>
#include <gmock/gmock.h>

#include "base/file.h"

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;

constexpr double kWorseAtMost = 0.01;  // than the best fixed split, which only hindsight knows
constexpr double kChangesPer400 = 10;

StepTimes recorded_times(const std::string& name) {
  const std::string path = std::string(REMUDA_STEP_TIMES) + "/" + name + ".jsonl";
  const auto times = parse_step_times(read_text(path).value(), path);
  EXPECT_TRUE(times) << times.error().message;
  return *times;
}

/// Two devices; the second needs three times as long, and ten times that in the last step.
StepTimes small_times() {
  StepTimes times;
  times.head = {8, {{"a", 1, {{8, 9e-3}, {4, 5e-3}}}, {"b", 1, {{8, 27e-3}, {4, 15e-3}}}}};
  times.steps = {{1, {4, 4}, {5e-3, 15e-3}, {0, 0}}, {2, {4, 4}, {10e-3, 150e-3}, {0, 0}}};
  return times;
}

class RecordedNoise : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedNoise, TheLawIsHardlyWorseThanTheBestFixedSplitAndSeldomMoves) {
  const auto replay = Replay::of(recorded_times(GetParam()), GetParam());
  ASSERT_TRUE(replay) << replay.error().message;
  ASSERT_GE(replay->steps(), 400);
  const Outcome law = replay->run(*balancer_law(replay->scenario()));
  EXPECT_LE(law.seconds, (1 + kWorseAtMost) * replay->seconds(replay->best_fixed_split()));
  EXPECT_LE(law.changes, kChangesPer400 * replay->steps() / 400);
}

INSTANTIATE_TEST_SUITE_P(Runs, RecordedNoise, ::testing::Values("noisy-builds", "noisy-neighbour"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Replay, ScalesRecordedTimesByTheLineOfWhatWasMeasuredAlone) {
  const auto replay = Replay::of(small_times(), "small");
  ASSERT_TRUE(replay) << replay.error().message;
  const auto seconds = replay->seconds(0, std::vector{6, 2});
  EXPECT_NEAR(seconds[0], 7e-3, 1e-9);
  EXPECT_NEAR(seconds[1], 9e-3, 1e-9);
  EXPECT_NEAR(replay->seconds(1, std::vector{6, 2})[0], 14e-3, 1e-9);
  EXPECT_EQ(replay->seconds(0, std::vector{8, 0})[1], 0);
  EXPECT_NEAR(replay->seconds(std::vector{8, 0}), 9e-3 + 18e-3, 1e-9);
}

TEST(Replay, FindsTheBestSplitOfHindsight) {
  EXPECT_THAT(Replay::of(small_times(), "small")->best_fixed_split(), ElementsAre(8, 0));
  StepTimes calm = small_times();
  calm.steps[1] = calm.steps[0];
  EXPECT_THAT(Replay::of(calm, "calm")->best_fixed_split(), ElementsAre(7, 1));
}

TEST(Replay, LeavesOutStepsThatAreNotWhole) {
  StepTimes times = small_times();
  times.steps[1].shares = {3, 4};
  EXPECT_EQ(Replay::of(times, "small")->steps(), 1);
}

TEST(Replay, RefusesRunsThatLackTimes) {
  StepTimes idle = small_times();
  idle.steps[1].shares = {8, 0};
  EXPECT_EQ(Replay::of(idle, "idle").error().message, "b has no time in step 2");
  StepTimes unmeasured = small_times();
  unmeasured.head.devices[0].alone.clear();
  EXPECT_EQ(Replay::of(unmeasured, "unmeasured").error().message, "a was not measured alone");
}

TEST(Replay, CountsChangesAndTimeOfALaw) {
  const auto replay = Replay::of(small_times(), "small");
  const Outcome even = replay->run(*even_law(replay->scenario()));
  EXPECT_NEAR(even.seconds, 165e-3, 1e-9);
  EXPECT_EQ(even.changes, 0);
  EXPECT_EQ(replay->run(*proportional_law(replay->scenario())).changes, 1);
}

}  // namespace
}  // namespace remuda::balance

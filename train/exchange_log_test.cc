#include "train/exchange_log.h"

#include <cmath>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

StepTotals times(std::vector<double> data_s, std::vector<double> wait_s, std::vector<double> gradient_wait_s) {
  StepTotals totals;
  totals.data_s = std::move(data_s);
  totals.wait_s = std::move(wait_s);
  totals.gradient_wait_s = std::move(gradient_wait_s);
  return totals;
}

TEST(ExchangeLog, HasNothingToSayOfNoStep) {
  ExchangeLog log;
  log.timed(times({9}, {9}, {9}));  // of a step before it began
  EXPECT_FALSE(log.costs());
  log.made(2, 10);
  EXPECT_EQ(log.costs()->step_s, 2);
  EXPECT_TRUE(std::isnan(log.costs()->data_s));
}

TEST(ExchangeLog, TakesMediansWithoutTheFirstStep) {
  ExchangeLog log;
  for (const double step_s : {100.0, 3.0, 2.0, 50.0}) {
    log.made(step_s, 10 * step_s);
    log.timed(times({step_s, step_s / 2}, {7, step_s / 10}, {step_s / 20, 6}));
  }
  const ExchangeCosts costs = log.costs().value();
  EXPECT_EQ(costs.steps, 4);
  EXPECT_EQ(costs.step_s, 3);
  EXPECT_EQ(costs.sent_bytes, 30);
  EXPECT_EQ(costs.data_s, 3) << "the longest";
  EXPECT_EQ(costs.wait_s, 0.3) << "of whom waited least";
  EXPECT_EQ(costs.gradient_wait_s, 0.15);
  EXPECT_EQ(to_json(costs), (Json{{"steps", 4}, {"step_s", 3.0}, {"sent_bytes", 30.0}}));
}

TEST(ExchangeLog, TakesTheTimesOfAStepOnce) {
  ExchangeLog log;
  log.made(1, 0);
  log.timed(times({1}, {0.5}, {0.5}));
  log.timed(times({8}, {8}, {8}));  // a step that is repeated has those of the one before again
  EXPECT_EQ(log.costs()->data_s, 1);
  log.begin_again();
  log.timed(times({8}, {8}, {8}));
  EXPECT_FALSE(log.costs());
}

}  // namespace
}  // namespace remuda::train

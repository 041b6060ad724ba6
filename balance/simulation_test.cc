// The requirement on the balancer, on simulated devices: mean over 40 fixed seeds. All figures: bench/balance.cc.

#include "balance/simulation.h"

#include <gtest/gtest.h>

namespace remuda::balance {

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

namespace {

class Simulation : public ::testing::TestWithParam<Scenario> {};

TEST_P(Simulation, ComesNearTheOracleWithFewMoves) {
  const Scenario& scenario = GetParam();
  const bool noisy = scenario.noise > 0.05, spiky = scenario.spike_chance > 0;
  const Verdict verdict = judge(scenario, balancer_law);
  EXPECT_GE(verdict.of_oracle, 0.965);
  EXPECT_LE(verdict.changes, noisy ? 15 : spiky ? 8 : 6);
  EXPECT_LE(verdict.most_changes, noisy ? 30 : spiky ? 20 : 10);
  EXPECT_LE(verdict.near_after, noisy ? 40 : 12);
  EXPECT_LE(verdict.near_again_after, noisy ? 30 : 8);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Simulation, ::testing::ValuesIn(standard_scenarios()), [](const auto& scenario) {
  std::string name;
  for (const char c : scenario.param.name)
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  return name;
});

TEST(SimulationItself, IsRepeatable) {
  const Scenario scenario = standard_scenarios()[1];
  const Outcome once = simulate(scenario, *balancer_law(scenario), 7);
  const Outcome again = simulate(scenario, *balancer_law(scenario), 7);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_EQ(once.changes, again.changes);
  EXPECT_NE(once.seconds, simulate(scenario, *balancer_law(scenario), 8).seconds);
}

TEST(SimulationItself, KnowsTheBestStep) {
  Scenario scenario = standard_scenarios()[0];
  scenario.noise = 0;
  const Outcome oracle = simulate(scenario, *oracle_law(scenario), 1);
  EXPECT_DOUBLE_EQ(oracle.seconds, oracle.ideal_seconds);
  EXPECT_NEAR(oracle.ideal_seconds, 200 * 14.85e-3 + 200 * 16.2e-3, 1e-9);
  EXPECT_EQ(oracle.changes, 1);
  EXPECT_EQ(oracle.near_after, 0);
}

TEST(SimulationItself, ShowsWhatAnEvenSplitCosts) {
  const Verdict even = judge(standard_scenarios()[0], even_law);
  EXPECT_NEAR(even.efficiency, 0.38, 0.01);
  EXPECT_EQ(even.changes, 0);
  EXPECT_EQ(even.near_after, 400);
}

}  // namespace
}  // namespace remuda::balance

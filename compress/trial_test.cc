#include "compress/trial.h"

#include <gmock/gmock.h>
#include <mutex>

#include "comm/testing/run_ranks.h"

namespace remuda::compress {
namespace {

constexpr auto kTcp = comm::ConnectOptions::Transport::tcp;

/// Of each rank.
std::vector<Trial> trials(int ranks, const TrialOptions& options) {
  std::vector<Trial> all;
  std::mutex mutex;
  comm::run_ranks(ranks, kTcp, [&](comm::Communicator& communicator) {
    const auto trial = try_exchanges(communicator, options, 1);
    ASSERT_TRUE(trial) << trial.error().message;
    const std::lock_guard lock(mutex);
    all.push_back(*trial);
  });
  return all;
}

TEST(Trial, GivesAllRanksTheSameFiguresOfWhatMayBe) {
  const std::vector<Shape> shapes{{300, 200}, {200, 1}, {10, 300}};
  for (const bool one_bit : {false, true}) {
    const auto all = trials(3, {.shapes = shapes, .powersgd = true, .one_bit = one_bit});
    ASSERT_EQ(all.size(), 3u);
    for (const Trial& trial : all) {
      EXPECT_GT(trial.latency_s, 0);
      EXPECT_GT(trial.seconds_per_byte, 0);
      ASSERT_TRUE(trial.powersgd_s);
      EXPECT_GT(*trial.powersgd_s, 0);
      EXPECT_EQ(trial.one_bit_s.has_value(), one_bit);
      EXPECT_EQ(trial.seconds_per_byte, all[0].seconds_per_byte);
      EXPECT_EQ(trial.powersgd_s, all[0].powersgd_s);
    }
  }
}

/// However little of a model is tried, what it takes is that of all of it.
TEST(Trial, IsInProportionToWhatItLeavesOut) {
  const std::vector<Shape> shapes{{4000, 500}, {500, 1}};
  const auto few = trials(2, {.shapes = shapes, .most_values = 100'000});
  const auto sending = few.at(0).sending_s(4 * 4 * 4500, 2);
  EXPECT_GE(*few.at(0).powersgd_s, sending);
  EXPECT_LT(*few.at(0).powersgd_s, 60) << "a mistake in units";
  EXPECT_GE(*few.at(0).one_bit_s, few.at(0).sending_s(250'062, 2));
}

TEST(Trial, OfAModelWithoutParametersMeasuresTheNetworkOnly) {
  const auto all = trials(2, {.shapes = {}});
  EXPECT_GT(all.at(0).seconds_per_byte, 0);
  EXPECT_EQ(all.at(1).seconds_per_byte, all[0].seconds_per_byte);
  EXPECT_EQ(all[1].latency_s, all[0].latency_s);
  EXPECT_FALSE(all.at(0).powersgd_s);
  EXPECT_FALSE(all.at(0).one_bit_s);
}

}  // namespace
}  // namespace remuda::compress

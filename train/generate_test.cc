#include "train/generate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "train/testing/cases.h"

namespace remuda::train {
namespace {

const std::vector<float> kScores{0, 2, 1, -30};

std::map<int, int> counts(double temperature, int top_k, int draws = 20'000) {
  std::mt19937_64 random(3);
  std::map<int, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[draw_token(kScores, temperature, top_k, random)];
  return counts;
}

TEST(DrawToken, TakesEachAsOftenAsItsScoreSays) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    auto drawn = counts(temperature, 0);
    double sum = 0;
    for (const float score : kScores) sum += std::exp(score / temperature);
    for (int token = 0; token < 3; ++token)
      EXPECT_NEAR(drawn[token] / 20'000.0, std::exp(kScores[token] / temperature) / sum, 0.02) << token;
    EXPECT_EQ(drawn[3], 0);
  }
}

TEST(DrawToken, TakesTheHighestAtTemperatureZeroOrAmongOne) {
  EXPECT_EQ(counts(0, 0, 100), (std::map<int, int>{{1, 100}}));
  EXPECT_EQ(counts(5, 1, 100), (std::map<int, int>{{1, 100}}));
}

TEST(DrawToken, ChoosesAmongTheLikeliestOnly) {
  const auto drawn = counts(100, 2);
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_TRUE(drawn.contains(1) && drawn.contains(2));
  EXPECT_EQ(counts(100, 9).size(), 4u) << "no more than there are";
}

/// A gpt of 23 different bytes that sees 12 of them.
class Generate : public ::testing::Test {
 protected:
  std::string text(const job::OutputSpec& spec, uint64_t seed) {
    int tokens = 0;
    const std::string text = generate(*model_, spec, case_.input.context, seed, [&] { ++tokens; }).value();
    EXPECT_EQ(tokens, spec.sample);
    return text;
  }
  const testing::ModelCase case_ = testing::model_cases()[2];
  const std::unique_ptr<Model> model_ = testing::make_seeded(case_, torch::kFloat);
};

TEST_F(Generate, GivesAsMuchAsIsAskedForAlsoBeyondTheContext) {
  for (const int sample : {0, 1, 50}) EXPECT_EQ(text({.sample = sample, .prompt = "\x05"}, 1).size(), size_t(sample));
}

TEST_F(Generate, GivesTheSameForTheSameSeed) {
  const job::OutputSpec spec{.sample = 50, .temperature = 1};
  EXPECT_EQ(text(spec, 1), text(spec, 1));
  EXPECT_NE(text(spec, 1), text(spec, 2));
}

TEST_F(Generate, GoesOnFromThePromptAndItsOwnText) {
  const job::OutputSpec whole{.sample = 9, .prompt = "\x05\x06", .temperature = 0};
  const std::string all = text(whole, 1);
  const job::OutputSpec rest{.sample = 5, .prompt = whole.prompt + all.substr(0, 4), .temperature = 0};
  EXPECT_EQ(text(rest, 1), all.substr(4));
  EXPECT_EQ(text({.sample = 9, .temperature = 0}, 1), text({.sample = 9, .prompt = "\n", .temperature = 0}, 1));
}

}  // namespace
}  // namespace remuda::train

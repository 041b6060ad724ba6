#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <random>

#include "job/testing/job.h"

namespace remuda::job {
namespace {

/// A worker reads the text under another name, in another folder.
void expect_round_trip(const ParsedJob& first) {
  const auto second = parse_job(first.text, "/elsewhere/worker.toml");
  ASSERT_TRUE(second) << second.error().message << "\n" << first.text;
  EXPECT_EQ(second->job, first.job) << first.text;
  EXPECT_EQ(second->text, first.text);
}

void expect_round_trip(const std::string& text, std::vector<std::string> settings = {},
                       std::vector<DeviceSpec> devices = {}) {
  const auto parsed = parse(text, std::move(settings), std::move(devices));
  ASSERT_TRUE(parsed) << parsed.error().message;
  expect_round_trip(*parsed);
}

TEST(JobText, ReadsBackAsTheSameJob) {
  expect_round_trip(kMlpJob);
  expect_round_trip(kGptJob);
  expect_round_trip(kMlpJob, {"model.name=resnet", "data.test={images=\"a\", labels=\"../b\"}"});
  expect_round_trip(
      "# a comment\n" + kGptJob +
      "[[device]]\nuse = \"cpu:3\"\nslowdown = 1.5\nshared = true\n[[device]]\nuse = \"cpu:4\"\nrole = \"state\"\n");
}

TEST(JobText, HoldsTheOverrides) {
  expect_round_trip(kMlpJob, {"balance.policy=fixed", "balance.shares=[3, 1]"}, {{"cpu:0", 1}, {"cpu:1", 1e20}});
}

TEST(JobText, KeepsOddPaths) {
  for (const std::string path : {"a b", "it's", "\"quoted\"", "'''", "\"\"\"", "back\\slash", "tab\tnew\nline", "été",
                                 "#no comment", "\x01\x7f", "]", "a=b", "\\u0041", "trailing\\"})
    expect_round_trip(kMlpJob, {"data.train.images=" + path});
}

TEST(JobText, KeepsNumbersToTheLastBit) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-300, 300), fraction(0, 1);
  for (int i = 0; i < 500; ++i)
    expect_round_trip(
        kMlpJob, {fmt::format("train.learning_rate={}", std::pow(10, exponent(random))),
                  fmt::format("train.momentum={}", fraction(random)), fmt::format("train.seed={}", random() >> 1)});
}

TEST(JobText, NeedsNoCommandLineToReadBackChangedKinds) {
  const auto parsed = parse(kMlpJob + "[balance]\npolicy = \"fixed\"\nshares = [1]\n", {"balance.policy=even"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->text.find("shares"), std::string::npos);
  expect_round_trip(*parsed);
}

}  // namespace
}  // namespace remuda::job

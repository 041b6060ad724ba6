// However a job is split, over any number of ranks and with any transport, training gives the same result.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

constexpr double kSameLoss = 1e-4;

std::vector<double> losses(const Json& report) { return report.value("loss_per_epoch", std::vector<double>{}); }

void expect_same(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], kSameLoss) << "epoch " << i + 1;
}

TEST(TrainEquality, OneAndTwoRanksLearnTheSame) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  const auto expected = losses(train_report(folder, {"--devices", "cpu:0"}));
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_LT(expected.back(), expected.front()) << "it learns";
  const std::vector<std::vector<std::string>> ways{
      {"--set", "balance.policy=auto"},
      {"--set", "balance.policy=even", "--transport", "tcp"},
      {"--set", "balance.policy=fixed", "--set", "balance.shares=[3, 1]", "--transport", "shm"}};
  for (const auto& way : ways) {
    SCOPED_TRACE(fmt::format("{}", way[1]));
    expect_same(losses(train_report(folder, way)), expected);
  }
}

TEST(TrainEquality, FixedSharesAreKeptAndTransportIsTheOneAskedFor) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.balance = "policy = 'fixed'\nshares = [3, 1]\n";
  const Json report = train_report(job_folder(job), {"--transport", "tcp"});
  EXPECT_EQ(report["transport"], "tcp");
  EXPECT_NEAR(report["devices"][0]["share"], 0.75, 1e-9);
  EXPECT_EQ(report["share_changes"], 0);
}

// Padding targets do not count, so the ranks' weights differ even where their shares do not.
TEST(TrainEquality, PaddedTokensLearnTheSameOnOneAndTwoRanks) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.model = fmt::format("name = 'gpt'\nwidth = 16\nheads = 2\nvocabulary = {}\n", kVocabulary);
  job.data = "format = 'tokens'\ntrain = 'train.tokens'\ncontext = 8\npadding = 0\n";
  job.train += "optimizer = 'adamw'\n";
  const ScratchFolder folder = job_folder(job);
  const auto expected = losses(train_report(folder, {"--devices", "cpu:0"}));
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_LT(expected.back(), expected.front()) << "it learns";
  expect_same(losses(train_report(folder, {"--set", "balance.policy=fixed", "--set", "balance.shares=[5, 1]"})),
              expected);
}

TEST(TrainEquality, ThreeRanksStartedByHandLearnTheSame) {
  JobText job;
  job.devices += "[[device]]\nuse = 'elsewhere:0'\n";
  const ScratchFolder folder = job_folder(job);
  const auto expected = losses(train_report(folder, {"--devices", "cpu:0"}));
  const int port = free_port();
  std::vector<RunningProgram> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(worker_command(folder), HandStarted{.rank = rank, .size = 3, .port = port}.environment());
  for (int rank = 2; rank >= 0; --rank) {
    const Finished finished = ranks[rank].finish();
    ASSERT_TRUE(finished.exit.ok()) << "rank " << rank << " " << finished;
    EXPECT_EQ(finished.out.empty(), rank != 0) << "only rank 0 sends the report";
  }
  const auto report = parse_json(ranks[0].out(), "rank 0's output");
  ASSERT_TRUE(report) << report.error().message;
  expect_same(losses(*report), expected);
  EXPECT_EQ((*report)["devices"][2]["id"], "elsewhere:0");
}

}  // namespace
}  // namespace remuda::tests

// However a job is split, over any number of ranks and with any transport, training gives the same result.
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/listener.h"
#include "tests/train_job_files.h"
#include "weights/reader.h"

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

/// The values of all tensors of a file of float32, one after the other.
std::vector<float> values_of(const std::string& path) {
  std::vector<float> values;
  const auto file = weights::Reader::open(path);
  if (!file) return ADD_FAILURE() << file.error().message, values;
  for (const auto& tensor : file->header().tensors) {
    std::vector<float> own(tensor.bytes() / sizeof(float));
    EXPECT_TRUE(file->read(tensor, 0, std::as_writable_bytes(std::span(own))));
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

/// |a - b| / |b|
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(double(a[i]) - b[i], 2);
    norm += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

TEST(TrainEquality, TwoRanksOnOneDeviceOneOfThemSlowedLearnTheSame) {
  JobText job;
  job.devices = "[[device]]\nuse = 'cpu:0'\nshared = true\n[[device]]\nuse = 'cpu:0'\nshared = true\nslowdown = 2\n";
  const ScratchFolder folder = job_folder(job);
  train_report(folder, {"--devices", "cpu:0", "--set", "output.weights=one.safetensors"});
  const Json report = train_report(folder, {"--set", "output.weights=two.safetensors", "--set", "balance.policy=fixed",
                                            "--set", "balance.shares=[2, 1]"});
  const std::vector<float> expected = values_of(folder.path("one.safetensors"));
  EXPECT_GT(expected.size(), 1000u);
  EXPECT_LT(distance(values_of(folder.path("two.safetensors")), expected), 1e-6);
  ASSERT_EQ(report["devices"].size(), 2u);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(report["devices"][rank]["id"], "cpu:0");
    EXPECT_EQ(report["devices"][rank]["slowdown"], rank + 1);
    EXPECT_GT(report["devices"][rank]["samples"], 0) << rank;
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
  const int port = free_port().value();
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

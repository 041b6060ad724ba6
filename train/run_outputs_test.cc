#include "train/run_outputs.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "train/testing/capped_memory.h"
#include "train/testing/cases.h"

namespace remuda::train {
namespace {

TEST(RunOutputs, OfADeviceThatIsFullLackTheSampleOnly) {
  const testing::CappedMemory capped;
  const ScratchFolder folder;
  const testing::ModelCase gpt = testing::model_cases()[2];
  const auto model = testing::make_seeded(gpt, torch::kFloat);
  job::TrainJob job;
  job.data.context = gpt.input.context;
  job.output.weights = folder.path("trained.safetensors");
  job.output.sample = 20;
  auto outputs = RunOutputs::create(job, *model);
  ASSERT_TRUE(outputs) << outputs.error().message;
  RunReport report;
  report.steps = 1;
  testing::Budget budget;
  budget.cap = 100;
  const testing::OnDevice device(budget);
  const auto written = outputs->write(*model, report, Events(-1));
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_TRUE(report.weights);
  EXPECT_TRUE(folder.has("trained.safetensors"));
  EXPECT_FALSE(report.sample);
  EXPECT_EQ(report.sample_missing, "the device of rank 0 ran out of memory after 0 of 20 bytes");
  EXPECT_EQ(to_json(report)["sample_missing"], report.sample_missing);
}

TEST(RunOutputs, ThatAreNotFiniteReplaceNothing) {
  const ScratchFolder folder;
  const testing::ModelCase gpt = testing::model_cases()[2];
  const auto model = testing::make_seeded(gpt, torch::kFloat);
  job::TrainJob job;
  job.data.context = gpt.input.context;
  job.output.weights = folder.write("trained.safetensors", "good ones");
  job.output.sample = 20;
  RunReport report;
  report.steps = 4;
  report.test = Evaluation{NAN, 0};
  ASSERT_TRUE(RunOutputs::create(job, *model).value().write(*model, report, Events(-1)));
  EXPECT_EQ(folder.read("trained.safetensors"), "good ones");
  EXPECT_EQ(folder.names().size(), 1u) << "nothing is left behind";
  EXPECT_FALSE(report.weights);
  EXPECT_FALSE(report.sample);
  EXPECT_EQ(report.sample_missing, "the test loss is nan at the end");
}

/// What became of the weights of a model whose folder was removed; `again`: and made again before they are written.
RunReport weights_in_a_new_folder(const ScratchFolder& folder, bool again) {
  const testing::ModelCase gpt = testing::model_cases()[2];
  const auto model = testing::make_seeded(gpt, torch::kFloat);
  job::TrainJob job;
  std::filesystem::create_directory(folder.path("out"));
  job.output.weights = folder.path("out/trained.safetensors");
  auto outputs = RunOutputs::create(job, *model, /*pause_s=*/0.001);
  std::filesystem::remove_all(folder.path("out"));
  if (again) std::filesystem::create_directory(folder.path("out"));
  RunReport report;
  report.steps = 1;
  const auto written = outputs->write(*model, report, Events(-1));
  EXPECT_TRUE(written) << written.error().message;
  return report;
}

TEST(RunOutputs, WeightsAreTriedAgain) {
  const ScratchFolder folder;
  const RunReport report = weights_in_a_new_folder(folder, true);
  EXPECT_TRUE(report.weights);
  EXPECT_TRUE(report.unwritten.empty());
  EXPECT_TRUE(folder.has("out/trained.safetensors"));
}

TEST(RunOutputs, WeightsThatCannotBeWrittenAreInTheReport) {
  const ScratchFolder folder;
  const RunReport report = weights_in_a_new_folder(folder, false);
  EXPECT_FALSE(report.weights);
  const Json json = to_json(report);
  ASSERT_EQ(json["unwritten"].size(), 1u);
  EXPECT_EQ(json["unwritten"][0]["output"], "weights");
  EXPECT_EQ(json["unwritten"][0]["why"],
            "cannot write " + folder.path("out/trained.safetensors") + ": there is no folder " + folder.path("out"));
  EXPECT_GT(json["unwritten"][0]["bytes"], 4000);
  EXPECT_FALSE(json.contains("weights"));
}

}  // namespace
}  // namespace remuda::train

#include "train/run_outputs.h"

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

}  // namespace
}  // namespace remuda::train

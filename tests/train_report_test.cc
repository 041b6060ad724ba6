// The report of a run of two devices: its fields, and that its figures are consistent.
#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "balance/step_times.h"
#include "tests/train_job_files.h"

namespace remuda::tests {
namespace {

using ::testing::HasSubstr;

constexpr int kEpochs = 3;
constexpr int kStepsPerEpoch = 6;  // 250 images, 48 at a time

/// Of an mlp of 144, 16 and 5 neurons, trained with momentum.
void expect_kinds(const Json& kinds, double peak) {
  constexpr double kParameters = 4 * (145 * 16 + 17 * 5);
  EXPECT_NEAR(kinds["parameters"], kParameters, 0.05 * kParameters);
  EXPECT_NEAR(kinds["gradients"], kParameters, 0.05 * kParameters);
  EXPECT_GT(kinds["optimizer"], 0) << "a part of it";
  EXPECT_LT(kinds["optimizer"], kParameters);
  EXPECT_GE(kinds["other"], 0) << to_line(kinds);
  EXPECT_GT(kinds["activations"], 0) << to_line(kinds);
  double sum = 0;
  for (const auto& [kind, bytes] : kinds.items()) sum += double(bytes);
  EXPECT_NEAR(sum, peak, 1) << to_line(kinds);
}

void expect_device_fields(const Json& device) {
  for (const char* key : {"id", "model"}) EXPECT_TRUE(device.contains(key) && device[key].is_string()) << key;
  for (const char* key : {"slowdown", "alone_samples_per_s"})
    EXPECT_TRUE(device.contains(key) && device[key] > 0) << key;
  EXPECT_EQ(device["alone_measurements"].size(), 1u) << "the run is short";
  // On a noisy machine a run may be faster when one of the two devices gets no samples.
  for (const char* key : {"share", "samples", "compute_s", "wait_s"})
    EXPECT_TRUE(device.contains(key) && device[key] >= 0) << key;
  if (device["samples"] == 0) return;
  const Json& memory = device["memory"];
  EXPECT_NEAR(double(memory["predicted_peak_bytes"]) / double(memory["peak_bytes"]), 1, 0.1) << to_line(memory);
  expect_kinds(memory["peak_by_kind"]["predicted"], memory["predicted_peak_bytes"]);
  expect_kinds(memory["peak_by_kind"]["measured"], memory["peak_bytes"]);
}

void expect_run_fields(const Json& report) {
  EXPECT_EQ(report["job"]["train.global_batch"], "48");
  for (const char* key :
       {"samples_per_s", "ideal_samples_per_s", "efficiency", "balance_efficiency", "seconds", "test_loss"})
    EXPECT_TRUE(report.contains(key) && report[key] > 0) << key;
  EXPECT_TRUE(report.contains("share_changes") && report["share_changes"].is_number_integer());
  EXPECT_TRUE(report.contains("host") && report["host"].is_string());
  EXPECT_EQ(report["balance"]["policy"], "auto");
  EXPECT_EQ(report["balance"]["decisions"][0]["step"], 0);
  EXPECT_EQ(report["loss_per_epoch"].size(), size_t{kEpochs});
  EXPECT_EQ(report["steps"], kEpochs * kStepsPerEpoch);
  EXPECT_EQ(report["skipped_steps"], 0);
  EXPECT_EQ(report["transport"], "shared memory");
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["stopped"], false);
  for (const char* key : {"remuda", "torch"}) EXPECT_THAT(std::string(report["versions"][key]), HasSubstr(".")) << key;
}

double sum_over_devices(const Json& report, const char* key) {
  double sum = 0;
  for (const auto& device : report["devices"]) sum += double(device[key]);
  return sum;
}

TEST(TrainReport, HasEveryFieldAndItsFiguresAddUp) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  // By the law, one device may own all of so small a state.
  const Json report = train_report(folder, {"--set", "train.seed=7", "--set", "balance.state_shares=[1,1]", "--set",
                                            fmt::format("train.epochs={}", kEpochs)});
  ASSERT_EQ(report["devices"].size(), 2u);
  for (const auto& device : report["devices"]) expect_device_fields(device);
  expect_run_fields(report);
  EXPECT_EQ(sum_over_devices(report, "samples"), kEpochs * kTrainImages);
  EXPECT_NEAR(sum_over_devices(report, "share"), 1, 1e-9);
  EXPECT_NEAR(sum_over_devices(report, "alone_samples_per_s"), report["ideal_samples_per_s"], 1e-3);
  EXPECT_NEAR(report["efficiency"], double(report["samples_per_s"]) / double(report["ideal_samples_per_s"]), 1e-9);
  EXPECT_GT(report["test_accuracy"], 0.5) << "five classes, and it learns";
  EXPECT_LE(report["test_accuracy"], 1);
  EXPECT_LT(report["loss_per_epoch"][kEpochs - 1], report["loss_per_epoch"][0]);
}

TEST(TrainReport, StepTimesAreWrittenStepByStep) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  train_report(folder, {"--step-times", folder.path("times.jsonl")});
  const auto times = balance::parse_step_times(folder.read("times.jsonl"), "times.jsonl");
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->head.global_batch, 48);
  ASSERT_EQ(times->head.devices.size(), 2u);
  EXPECT_EQ(times->head.devices[1].id, "cpu:1");
  EXPECT_EQ(times->head.devices[0].alone.size(), 3u);
  EXPECT_EQ(times->steps.size(), size_t{kEpochs * kStepsPerEpoch - 1}) << "no later step carries the last step's times";
  for (const auto& step : times->steps) {
    EXPECT_EQ(step.step, 1 + (&step - times->steps.data()));
    EXPECT_EQ(step.shares[0] + step.shares[1], step.step % kStepsPerEpoch == 0 ? 10 : 48);
    EXPECT_GT(step.compute_s[0], 0);
  }
}

TEST(TrainReport, RefusesStepTimesThatAreNoRegularFile) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  const Finished finished = run(train_command(folder, {"--step-times", "/dev/null"}));
  EXPECT_EQ(finished.exit.status, 2);
  EXPECT_THAT(finished.err, HasSubstr("cannot write /dev/null: it is not a regular file"));
}

TEST(TrainReport, ADeviceThatWouldDelayAllTakesNoSamples) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.devices += "slowdown = 100.0\n";
  const ScratchFolder folder = job_folder(job);
  const Json report = train_report(folder);
  EXPECT_EQ(report["devices"][0]["share"], 1);
  EXPECT_EQ(report["devices"][1]["share"], 0);
  EXPECT_GT(report["test_accuracy"], 0.5);
}

TEST(TrainReport, AFewStepsMeasureNothing) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  const Finished finished = run(train_command(folder, {"--set", "train.max_steps=3", "--json", folder.path("r.json")}));
  ASSERT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("too few steps to measure"));
  const auto report = parse_json(folder.read("r.json"), "r.json");
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->contains("samples_per_s"));
  EXPECT_FALSE(report->contains("efficiency"));
}

TEST(TrainReport, SlowdownIsToldWhereverTheDeviceIs) {
  REMUDA_NEEDS_TWO_CORES();
  JobText job;
  job.devices += "slowdown = 3.0\n";
  const ScratchFolder folder = job_folder(job);
  const Finished finished = run(train_command(folder, {"--json", folder.path("report.json")}));
  ASSERT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("  3.0x  "));
  EXPECT_THAT(finished.out, HasSubstr("samples/s"));
  EXPECT_THAT(finished.err, HasSubstr("cpu:1 (slowed 3.0x) alone: "));
  const auto report = parse_json(folder.read("report.json"), "report.json");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*report)["devices"][0]["slowdown"], 1);
  EXPECT_EQ((*report)["devices"][1]["slowdown"], 3);
}

TEST(TrainReport, QuietRunTellsItsResultOnly) {
  const ScratchFolder folder = job_folder();
  const Finished finished = run(train_command(folder, {"--quiet", "--devices", "cpu:0"}));
  EXPECT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("loss per epoch"));
  EXPECT_EQ(finished.err, "");
}

TEST(TrainReport, HasAHistoryOfItsStepsThatIsDrawn) {
  REMUDA_NEEDS_TWO_CORES();
  const ScratchFolder folder = job_folder();
  const Json report = train_report(folder);
  const Json& history = report["history"];
  constexpr size_t kPoints = kEpochs * kStepsPerEpoch - 1;  // nobody has the times of the last step
  EXPECT_EQ(history["steps_per_point"], 1);
  EXPECT_EQ(history["last_step"].size(), kPoints);
  EXPECT_LT(history["loss"][kPoints - 1], history["loss"][0]);
  double step_s = 0, all_s = 0;
  for (const char* phase : {"data_s", "compute_s", "update_s", "communication_s", "wait_s"}) {
    ASSERT_EQ(history[phase].size(), kPoints) << phase;
    for (const auto& seconds : history[phase]) step_s += double(seconds);
  }
  for (const char* key : {"compute_s", "wait_s"}) all_s += sum_over_devices(report, key) / 2;
  EXPECT_LE(step_s, all_s);
  EXPECT_NEAR(double(history["share"][0][0]) + double(history["share"][1][0]), 1, 1e-9);
  const std::vector<std::string> draw{REMUDA_PROGRAM, "report", folder.path("report.json"), "--plot",
                                      folder.path("run.svg")};
  const Finished drawn = run(draw);
  EXPECT_TRUE(drawn.exit.ok()) << drawn;
  EXPECT_THAT(folder.read("run.svg"), HasSubstr("Time of a step, ms"));
  std::vector<std::string> two = draw;
  two.push_back(folder.path("report.json"));
  const Finished refused = run(two);
  EXPECT_EQ(refused.exit.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--plot draws one run, but there are 2 reports"));
}

TEST(TrainReport, ReportsOfTwoRunsStandSideBySide) {
  const ScratchFolder folder = job_folder();
  train_report(folder, {"--devices", "cpu:0"});
  const Finished finished = run({REMUDA_PROGRAM, "report", folder.path("report.json"), folder.path("report.json")});
  EXPECT_TRUE(finished.exit.ok()) << finished;
  EXPECT_THAT(finished.out, HasSubstr("cpu:0"));
}

}  // namespace
}  // namespace remuda::tests

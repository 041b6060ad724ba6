#include "cli/train/train_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/characters.h"

namespace remuda::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

job::TrainJob job() {
  job::TrainJob job;
  job.train.epochs = 5;
  job.devices = {{"cpu:0", 1.0}, {"cpu:1", 3.0}};
  return job;
}

const Json kStep{{"event", "step"},     {"step", 120},
                 {"steps", 1175},       {"epoch", 1},
                 {"loss", 0.53125},     {"samples_per_s", 5300.6},
                 {"shares", {195, 61}}, {"compute_s", {0.099, 0.5}},
                 {"wait_s", {0.001, 0}}};

TEST(TrainProgress, OpensWithTheDevicesAndTheirSlowdowns) {
  EXPECT_EQ(TrainProgress(job()).opening(), "training on cpu:0, cpu:1 (slowed 3.0x)");
}

TEST(TrainProgress, TellsRanksOnOneDeviceApart) {
  job::TrainJob shared = job();
  shared.devices = {{"cpu:0", 1, true}, {"cpu:0", 3, true}};
  TrainProgress progress(shared);
  EXPECT_EQ(progress.opening(), "training on cpu:0 #1, cpu:0 #2 (slowed 3.0x)");
  EXPECT_EQ(progress.take(1, {{"event", "alone"}, {"samples_per_s", 400}}),
            "cpu:0 #2 (slowed 3.0x) alone: 400 samples/s");
  progress.take(0, kStep);
  EXPECT_THAT(progress.status(), HasSubstr("cpu:0 #1 76 % wait 1 % · cpu:0 #2 24 % wait 0 %"));
}

TEST(TrainProgress, TellsWhichDeviceIsMeasured) {
  TrainProgress progress(job());
  EXPECT_EQ(progress.status(), "starting 2 workers, 0 ready");
  for (const int rank : {0, 1}) EXPECT_EQ(progress.take(rank, {{"event", "ready"}, {"rank", rank}}), "");
  EXPECT_EQ(progress.status(), "measuring cpu:0 alone");
  EXPECT_EQ(progress.take(0, {{"event", "alone"}, {"samples_per_s", 4100.2}}), "cpu:0 alone: 4100 samples/s");
  EXPECT_EQ(progress.status(), "measuring cpu:1 alone");
  EXPECT_EQ(progress.take(1, {{"event", "alone"}, {"samples_per_s", 83.25}}),
            "cpu:1 (slowed 3.0x) alone: 83.2 samples/s");
  EXPECT_EQ(progress.status(), "all devices measured");
  EXPECT_LT(progress.done(), 0);
}

TEST(TrainProgress, TellsWhatAStepTakesOfEachMemory) {
  TrainProgress progress(job());
  Json event{
      {"event", "memory"}, {"peak_bytes", {3 << 20, nullptr}}, {"room_bytes", {12 << 20, 0}}, {"pieces", {2, 1}}};
  EXPECT_EQ(progress.take(0, event), "memory of a step: cpu:0 3.0 MiB of 12.0 MiB in 2 pieces, cpu:1 not known");
  event["spills"] = true;
  EXPECT_THAT(progress.take(0, event), EndsWith("; activations lie in the host's memory meanwhile so that it fits"));
  event["recomputes"] = true;
  EXPECT_THAT(progress.take(0, event), EndsWith("meanwhile so that it fits; blocks are recomputed so that it fits"));
}

TEST(TrainProgress, TellsHowBucketsGoBetweenGpus) {
  const Json by{{"event", "device_collectives"}, {"library", "NCCL 2.21.5"}, {"same_bits", false}},
      without{{"event", "device_collectives"}, {"why_not", "ranks 0 and 1 share the device 0000:01:00.0"}};
  job::TrainJob on_gpus = job();
  for (auto& device : on_gpus.devices) device.use = "gpu:0";
  EXPECT_EQ(TrainProgress(on_gpus).take(0, by), "buckets go from device to device by NCCL 2.21.5");
  EXPECT_EQ(TrainProgress(on_gpus).take(0, without),
            "buckets go through memory of the host: ranks 0 and 1 share the device 0000:01:00.0");
  EXPECT_EQ(TrainProgress(job()).take(0, without), "") << "nobody expects it of a CPU";
}

TEST(TrainProgress, TellsTheStepInOneLine) {
  TrainProgress progress(job());
  EXPECT_EQ(progress.take(0, kStep), "");
  EXPECT_EQ(progress.status(),
            "epoch 1/5, 10 %, loss 0.5312, 5301 samples/s, cpu:0 76 % wait 1 % · cpu:1 24 % wait 0 %");
  EXPECT_NEAR(progress.done(), 120.0 / 1175, 1e-9);
}

TEST(TrainProgress, SumsTheDevicesUpWhereTheyDoNotFit) {
  TrainProgress progress(job());
  progress.take(0, kStep);
  const std::string whole = progress.status();
  EXPECT_EQ(progress.status(characters(whole)), whole);
  EXPECT_EQ(progress.status(characters(whole) - 1),
            "epoch 1/5, 10 %, loss 0.5312, 5301 samples/s, 2 devices wait 0 to 1 %");
}

TEST(TrainProgress, KnowsHowLongAStepTakes) {
  TrainProgress progress(job());
  EXPECT_EQ(progress.step_s(), 0);
  progress.take(0, {{"event", "balance"}, {"predicted_step_s", 20}});
  EXPECT_EQ(progress.step_s(), 20) << "before the first step";
  progress.take(0, {{"event", "step"}, {"compute_s", {24, 8}}, {"wait_s", {1, nullptr}}});
  EXPECT_EQ(progress.step_s(), 25);
}

TEST(TrainProgress, KeepsALinePerDecision) {
  EXPECT_EQ(TrainProgress(job()).take(0, {{"event", "balance"},
                                          {"step", 16},
                                          {"shares", {195, 61}},
                                          {"predicted_gain", 0.051},
                                          {"reason", "cpu:1 is slower than it was"}}),
            "step 16: shares cpu:0 195, cpu:1 61, predicted gain 5.1 %: cpu:1 is slower than it was");
}

TEST(TrainProgress, KeepsALinePerEpoch) {
  TrainProgress progress(job());
  EXPECT_EQ(progress.take(0, {{"event", "epoch"}, {"epoch", 1}, {"epochs", 5}, {"train_loss", 0.5}}),
            "epoch 1/5: train loss 0.5000");
  EXPECT_EQ(progress.take(0, {{"event", "epoch"},
                              {"epoch", 2},
                              {"epochs", 5},
                              {"train_loss", 0.4},
                              {"test_loss", 0.45},
                              {"test_accuracy", 0.8612}}),
            "epoch 2/5: train loss 0.4000, test loss 0.4500, test accuracy 86.12 %");
  EXPECT_EQ(progress.take(0, {{"event", "epoch"},
                              {"epoch", 3},
                              {"epochs", 5},
                              {"train_loss", nullptr},
                              {"test_loss", nullptr},
                              {"test_accuracy", 0.2}}),
            "epoch 3/5: train loss nan, test loss nan, test accuracy 20.00 %")
      << "what is not known is not 0";
}

TEST(TrainProgress, SaysWhatIsMadeAfterTheLastStep) {
  TrainProgress progress(job());
  progress.take(0, {{"event", "step"}, {"step", 10}, {"steps", 10}});
  progress.take(0, {{"event", "output"}, {"output", "weights"}});
  EXPECT_EQ(progress.status(), "writing the weights");
  progress.take(0, {{"event", "output"}, {"output", "sample"}});
  EXPECT_EQ(progress.status(), "generating the sample");
}

TEST(TrainProgress, OutlastsEventsWithMissingOrStrangeFields) {
  TrainProgress progress(job());
  for (const char* name : {"ready", "alone", "step", "balance", "epoch", "error", "done", "unheard of"})
    progress.take(0, {{"event", name}, {"shares", "many"}, {"steps", 10}, {"loss", nullptr}});
  EXPECT_THAT(progress.status(), HasSubstr("cpu:0 0 % wait 0 %"));
  progress.take(0, {{"event", "balance"}, {"shares", {1, 2, 3}}});
}

TEST(TrainProgress, GoesOnWithTheDevicesThatAreLeft) {
  job::TrainJob three = job();
  three.devices.push_back({"gpu:0"});
  TrainProgress progress(three);
  progress.take(0, kStep);
  EXPECT_EQ(progress.take_loss({0, 2}, {{.rank = 1, .device = "cpu:1", .cause = "killed by signal 9 (Killed)"}}),
            "rank 1 (cpu:1) was lost: killed by signal 9 (Killed); cpu:0, gpu:0 go on");
  EXPECT_EQ(progress.take(2, {{"event", "alone"}, {"samples_per_s", 400}}), "gpu:0 alone: 400 samples/s")
      << "events come from the ranks as they began";
  EXPECT_EQ(
      progress.take(
          0, {{"event", "regrouped"}, {"step", 12}, {"resumed_from", 10}, {"state", "checkpoint"}, {"seconds", 1.25}}),
      "goes on after step 10, from the checkpoint, 1.2 s after the loss; 2 steps are repeated");
  progress.take(0, kStep);
  EXPECT_THAT(progress.status(), HasSubstr("cpu:0 76 % wait 1 % · gpu:0 24 % wait 0 %"));
  EXPECT_THAT(progress.take_loss({0}, {{.rank = 2, .device = "gpu:0", .cause = "lost"}}), HasSubstr("; cpu:0 goes on"));
}

TEST(TrainProgress, GoesOnWithTheRanksThatHaveAgreed) {
  job::TrainJob three = job();
  three.devices.push_back({"gpu:0"});
  TrainProgress progress(three);
  EXPECT_EQ(
      progress.take(
          1, {{"event", "left"},
              {"generation", 1},
              {"ranks", {1, 2}},
              {"lost",
               {{{"rank", 0}, {"device", "cpu:0"}, {"cause", "it went away during barrier #1 (label 2, 0 bytes)"}}}}}),
      "rank 0 (cpu:0) was lost: it went away while ranks waited for each other; cpu:1, gpu:0 go on");
  progress.take(1, kStep);
  EXPECT_THAT(progress.status(), HasSubstr("cpu:1 76 % wait 1 % · gpu:0 24 % wait 0 %"));
  progress.take(1, {{"event", "left"}, {"generation", 2}, {"ranks", {-1, 7, "x"}}, {"lost", 7}});
}

TEST(TrainProgress, GoesOnWithOneMoreDevice) {
  TrainProgress progress(job());
  const Json joined{{"event", "joined"},
                    {"generation", 1},
                    {"rank", 2},
                    {"ranks", {0, 1, 2}},
                    {"devices", {"cpu:0", "cpu:1", "cpu:1"}},
                    {"step", 12},
                    {"seconds", 1.25}};
  EXPECT_EQ(progress.take(1, joined),
            "cpu:1 #2 has joined as rank 2 after step 12, within 1.2 s; cpu:0, cpu:1 #1, cpu:1 #2 go on");
  EXPECT_EQ(progress.take(0, joined), "") << "each of them says so";
  EXPECT_EQ(progress.take(2, {{"event", "alone"}, {"samples_per_s", 400}}), "cpu:1 alone: 400 samples/s");
  EXPECT_EQ(progress.take(0, {{"event", "left"}, {"generation", 2}, {"ranks", {0, 2}}, {"lost", {{{"rank", 1}}}}}),
            "rank 1 () was lost: ; cpu:0, cpu:1 #2 go on");
  progress.take(0, {{"event", "joined"}, {"generation", 3}, {"rank", -1}, {"ranks", {9, -1}}, {"devices", {7}}});
}

TEST(TrainProgress, TellsTheFirstSplitOfOtherRanksWithThemAndTheirStep) {
  const auto split = [](std::vector<int> shares) {
    return Json{{"event", "balance"}, {"step", 0}, {"shares", shares}, {"predicted_gain", 0.25}, {"reason", "start"}};
  };
  TrainProgress progress(job());
  EXPECT_EQ(progress.take(0, split({20, 10, 18})), "") << "of whom is not known yet";
  EXPECT_EQ(progress.take(0, {{"event", "joined"},
                              {"generation", 1},
                              {"rank", 2},
                              {"ranks", {0, 1, 2}},
                              {"devices", {"cpu:0", "cpu:1", "cpu:2"}},
                              {"step", 12},
                              {"seconds", 1}}),
            "cpu:2 has joined as rank 2 after step 12, within 1.0 s; cpu:0, cpu:1, cpu:2 go on\n"
            "step 12: shares cpu:0 20, cpu:1 10, cpu:2 18, predicted gain 25.0 %: start");
  progress.take_loss({0, 2}, {});
  EXPECT_EQ(progress.take(0, split({30, 18})), "") << "after which step is not known yet";
  EXPECT_THAT(progress.take(0, {{"event", "regrouped"}, {"step", 20}, {"resumed_from", 18}, {"state", "memory"}}),
              EndsWith("\nstep 18: shares cpu:0 30, cpu:2 18, predicted gain 25.0 %: start"));
  EXPECT_THAT(progress.take(0, split({31, 17})), HasSubstr("step 0: shares cpu:0 31, cpu:2 17")) << "as it says";
}

TEST(TrainProgress, SaysOfACheckpointAtTheEndNotThatTheRunGoesOn) {
  TrainProgress progress(job());
  Json lost{{"event", "checkpoint"}, {"step", 4}, {"failed", "no room"}};
  EXPECT_EQ(progress.take(0, lost), "step 4: no checkpoint: no room; the run goes on");
  lost["goes_on"] = false;
  EXPECT_EQ(progress.take(0, lost), "step 4: no checkpoint: no room");
}

TEST(TrainProgress, SaysWhereOthersCanJoin) {
  TrainProgress progress(job());
  EXPECT_EQ(progress.take(0, {{"event", "door"}, {"address", "127.0.0.1:29600"}}),
            "other devices can join at 127.0.0.1:29600: remuda train FILE --join 127.0.0.1:29600 --devices DEVICE");
}

}  // namespace
}  // namespace remuda::cli

#include "cli/train/train_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/train/report_text.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const Inventory kMachine{.host = "lab",
                         .devices = {{.id = "cpu:0", .model = "EPYC 9654"}, {.id = "cpu:1", .model = "EPYC 9654"}}};

Json report() {
  return Json::parse(R"({
    "devices": [
      {"id": "cpu:0", "slowdown": 1.0, "alone_samples_per_s": 4100.4, "share": 0.7617, "samples": 195000,
       "compute_s": 45.1, "wait_s": 0.42},
      {"id": "cpu:1", "slowdown": 3.0, "alone_samples_per_s": 1366, "share": 0.2383, "samples": 61000,
       "compute_s": 45.304, "wait_s": 0.1}],
    "samples_per_s": 5300.2, "ideal_samples_per_s": 5466.4, "efficiency": 0.9696, "balance_efficiency": 0.9943, "share_changes": 2,
    "loss_per_epoch": [0.5312, 0.42105], "test_loss": 0.4, "test_accuracy": 0.8612, "steps": 1175,
    "versions": {"remuda": "?", "torch": "1.13.0"}, "stopped": false})");
}

TEST(TrainSummary, TellsRanksOnOneDeviceApart) {
  Json shared = report();
  shared["devices"][1]["id"] = "cpu:0";
  const std::string text = summary_text(complete_report(shared, kMachine, {}).value());
  EXPECT_THAT(text, HasSubstr("\ncpu:0 #1  EPYC 9654  no  "));
  EXPECT_THAT(text, HasSubstr("\ncpu:0 #2  EPYC 9654  3.0x  "));
}

TEST(TrainSummary, IsATableAndALinePerResult) {
  EXPECT_EQ(summary_text(complete_report(report(), kMachine, {}).value()),
            "device  model      slowed  alone/s   share  samples  compute s  wait s\n"
            "cpu:0   EPYC 9654  no         4100  76.2 %   195000      45.10    0.42\n"
            "cpu:1   EPYC 9654  3.0x       1366  23.8 %    61000      45.30    0.10\n"
            "\n"
            "samples/s       5300\n"
            "ideal           5466\n"
            "efficiency      97.0 %\n"
            "balance         99.4 % of all time was computing\n"
            "share changes   2\n"
            "loss per epoch  0.5312 0.4210\n"
            "test loss       0.4000\n"
            "test accuracy   86.12 %\n"
            "\n"
            "Computing took 99 % of each step: only more or faster devices make it shorter;\n"
            "one more like cpu:0 would make it up to 43 % shorter.\n");
}

TEST(TrainSummary, LeavesNothingATerminalObeys) {
  const std::string wild = "\x1b[2J\nx";
  Json strange = report();
  strange["devices"][0].update(
      {{"id", wild}, {"model", wild}, {"role", wild}, {"unregistered", {{"bytes", 1}, {"why", wild}}}});
  strange["job"] = {{"output.weights", wild}};
  strange["weights"] = {{"tensors", 4}, {"bytes", 9}, {"format", wild}};
  strange["sample_missing"] = wild;
  strange["profile"] = {
      {"steps", 1}, {"trace", wild}, {"devices", {{{"operators", {{{"name", wild}, {"calls", 1}}}}}}}};
  const std::string text = summary_text(strange);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\nx")));
  for (const char* before : {"9 B, as ", " in ", "There is no sample: ", "The trace is ", "than it was asked for ("})
    EXPECT_THAT(text, HasSubstr(std::string(before) + "?[2J?x"));
}

TEST(TrainSummary, NamesRolesAndWhatTheyGain) {
  Json unlike = report();
  unlike["devices"][0]["role"] = "compute";
  unlike["devices"][1]["role"] = "state";
  unlike["devices"][1]["share"] = 0.0;
  unlike["efficiency"] = unlike["balance_efficiency"] = 0.5;
  unlike["roles"]["sentence"] = "With cpu:1 for state, a step is about 20 % shorter.";
  const std::string text = summary_text(complete_report(unlike, kMachine, {}).value());
  EXPECT_THAT(text, testing::ContainsRegex("cpu:0 +EPYC 9654 +no +4100 +76.2 % +195000"));
  EXPECT_THAT(text, testing::ContainsRegex("cpu:1 +EPYC 9654 +3.0x +1366 +state +61000"));
  EXPECT_THAT(text, HasSubstr("\nWith cpu:1 for state, a step is about 20 % shorter.\n"));
  EXPECT_THAT(text, Not(HasSubstr("takes no samples")));
}

TEST(TrainSummary, SaysWhoIsLeftOutAndWhatThatHasGained) {
  Json slower = report();
  EXPECT_EQ(left_out_text(slower), "");
  slower["balance"]["left_out"] = Json::parse(R"([{"rank": 1, "device": "cpu:1", "with_samples_per_s": 918.2,
    "without_samples_per_s": 1370.4, "with_was_tried": true}])");
  EXPECT_EQ(left_out_text(slower), "cpu:1 is left out: with it 918 samples/s, without 1370.");
  EXPECT_THAT(summary_text(complete_report(slower, kMachine, {}).value()),
              HasSubstr("\ncpu:1 is left out: with it 918"));
  slower["balance"]["left_out"][0]["with_was_tried"] = false;
  EXPECT_EQ(left_out_text(slower), "cpu:1 is left out: with it 918 samples/s predicted, without 1370.");
}

TEST(TrainSummary, SaysWhatHeldTheRunBack) {
  Json waited = report();
  waited["devices"][1]["data_wait_s"] = 18.1;
  const Json complete = complete_report(waited, kMachine, {}).value();
  EXPECT_THAT(summary_text(complete), HasSubstr("\n\nLoading data took 40 % of each step of cpu:1: "));
  EXPECT_EQ(complete["bottleneck"]["limit"], "data");
  EXPECT_FALSE(complete_report({{"devices", Json::array()}}, kMachine, {}).value().contains("bottleneck"));
}

TEST(TrainSummary, SaysWhichDeviceRanOutOfMemoryAndWhatAvoidsIt) {
  Json short_of_it = report();
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()), Not(HasSubstr("memory")));
  short_of_it["devices"][1].update({{"oom_steps", 2}, {"pieces", 4}});
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()),
              HasSubstr("cpu:1 ran out of memory 2 times; each time the step was repeated, in the end\n"
                        "with its part in 4 pieces. memory.accumulate = 4, or memory.recompute =\n"
                        "\"blocks\", saves the attempts."));
  short_of_it["devices"][0]["oom_evaluations"] = 1;
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()),
              HasSubstr("cpu:0 ran out of memory in evaluation, and went on with smaller batches."));
  short_of_it["devices"][1]["memory"] = {{"peak_bytes", 8e9}, {"reserved_peak_bytes", 9e9}, {"room_bytes", 9.5e9}};
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()), HasSubstr("fragmentation"));
  short_of_it["devices"][1]["memory"]["peak_bytes"] = 8.9e9;
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()), Not(HasSubstr("fragmentation")));
}

TEST(TrainSummary, SaysWhoseDriverDidNotRegisterMemory) {
  Json unregistered = report();
  EXPECT_EQ(unregistered_text(unregistered), "");
  unregistered["devices"][1]["unregistered"] = {{"bytes", 3 << 20}, {"why", "out of memory (error 2)"}};
  EXPECT_EQ(unregistered_text(unregistered),
            "Copies between cpu:1 and its host took a detour, which is slower: its driver registered 3.0 MiB of memory "
            "less than it was asked for (out of memory (error 2)). A limit of locked memory may be why (`ulimit -l`).");
  EXPECT_THAT(summary_text(unregistered), HasSubstr("took a detour"));
}

TEST(TrainSummary, SaysWhereBatchNormSeesUnlikeBatches) {
  Json uneven = report();
  uneven["devices"][0].update({{"share", 0.8}, {"pieces", 1}});
  uneven["devices"][1].update({{"share", 0.2}, {"pieces", 1}});
  const auto text = [&] { return summary_text(complete_report(uneven, kMachine, {}).value()); };
  EXPECT_THAT(text(), Not(HasSubstr("Batch norm"))) << "the model has none";
  uneven["batch_norm"] = "local";
  EXPECT_THAT(text(), HasSubstr("Batch norm normalises the samples of each device by themselves, and some have\n4.0 "
                                "times as many as others"));
  EXPECT_THAT(text(), Not(HasSubstr("synchronized"))) << "nothing is known of the model";
  const Json resnet{{"model.name", "resnet"}};
  EXPECT_THAT(summary_text(complete_report(uneven, kMachine, resnet).value()), HasSubstr("synchronized"));
  uneven["devices"][0]["pieces"] = 3;
  EXPECT_THAT(text(), Not(HasSubstr("Batch norm"))) << "pieces of like size";
  uneven["devices"][0]["pieces"] = 1;
  uneven["devices"][1]["share"] = 0;
  EXPECT_THAT(text(), Not(HasSubstr("Batch norm"))) << "there is only one";
  uneven["devices"][1]["share"] = 0.2;
  uneven["balance"]["micro_batch"] = 32;
  EXPECT_THAT(text(), Not(HasSubstr("Batch norm")));
}

TEST(TrainSummary, OfMicroBatchesSaysWhatMemoryWasShortOf) {
  Json short_of_it = report();
  short_of_it["balance"]["micro_batch"] = 32;
  short_of_it["devices"][1]["oom_steps"] = 1;
  EXPECT_THAT(summary_text(complete_report(short_of_it, kMachine, {}).value()),
              HasSubstr("cpu:1 ran out of memory 1 time, with micro-batches of 32 samples, and got fewer\nof them; a "
                        "smaller train.micro_batch, or memory.recompute = \"blocks\", may help."));
}

TEST(TrainSummary, LeavesOutWhatTheReportLacks) {
  const Json little = Json::parse(R"({"devices": [{"id": "cpu:0"}, 7], "efficiency": "good", "stopped": true,
                                      "steps": 12})");
  EXPECT_EQ(summary_text(little),
            "device  model  slowed  alone/s  share  samples  compute s  wait s\n"
            "cpu:0   -      -       -        -      -        -          -\n"
            "-       -      -       -        -      -        -          -\n"
            "\n"
            "samples/s       too few steps to measure\n"
            "stopped         after step 12\n");
}

TEST(TrainSummary, SaysThatAFewStepsMeasureNothing) {
  Json few = report();
  few.erase("samples_per_s");
  few.erase("efficiency");
  const std::string text = summary_text(few);
  EXPECT_THAT(text, HasSubstr("samples/s       too few steps to measure\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("efficiency")));
}

TEST(TrainSummary, SaysWhyThereIsNoSample) {
  Json full = report();
  full["sample_missing"] = "the device of rank 0 ran out of memory after 3 of 50 bytes";
  EXPECT_THAT(
      summary_text(full),
      testing::EndsWith("\n\nThere is no sample: the device of rank 0 ran out of memory after 3 of 50 bytes.\n"));
}

TEST(TrainSummary, SaysWhatCouldNotBeWritten) {
  Json kept = report();
  kept["checkpoints"] = {{"written", 2}, {"failed", 5}};
  kept["job"]["output.weights"] = "w.safetensors";
  EXPECT_THAT(summary_text(kept), HasSubstr("\ncheckpoints     2 written, 5 could not be written\n"
                                            "weights         not written\n"));
  kept["checkpoints"]["failed"] = 0;
  EXPECT_THAT(summary_text(kept), Not(HasSubstr("checkpoints")));
  kept["steps"] = 0;
  EXPECT_THAT(summary_text(kept), HasSubstr("weights         not written, as no step was made\n"));
}

TEST(TrainSummary, ExplainsALowEfficiency) {
  Json slow = report();
  slow["efficiency"] = 0.71;
  EXPECT_THAT(summary_text(slow),
              HasSubstr("\n\nslower than the sum of the devices alone (71 % of it), though the devices hardly\n"
                        "wait for each other"));
}

TEST(TrainSummary, FitsIn80Columns) {
  Inventory machine = kMachine;
  machine.devices[0].model = "NVIDIA RTX 6000 Ada Generation Workstation Edition";
  Json long_run = report();
  long_run["efficiency"] = 0.5;
  for (int epoch = 0; epoch < 90; ++epoch) long_run["loss_per_epoch"].push_back(0.25);
  const std::string text = summary_text(complete_report(long_run, machine, {}).value());
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(text, HasSubstr("cpu:0   NVIDIA"));
}

TEST(TrainSummary, ShowsALossThatIsNoNumber) {
  const std::string text =
      summary_text({{"devices", Json::array()}, {"loss_per_epoch", {0.5, nullptr}}, {"test_loss", nullptr}});
  EXPECT_THAT(text, HasSubstr("loss per epoch  0.5000 nan\n"));
  EXPECT_THAT(text, HasSubstr("test loss       nan\n"));
}

TEST(TrainSummary, SaysWhereTheWeightsAre) {
  Json with{{"devices", Json::array()}, {"job", {{"output.weights", "/a/w.safetensors"}}}};
  EXPECT_THAT(summary_text(with), HasSubstr("weights         not written, as no step was made\n"));
  with["not_finite"] = "the test loss is nan at the end";
  EXPECT_THAT(summary_text(with), HasSubstr("weights         not written, as the loss is not finite\n"));
  with["weights"] = {{"format", "safetensors"}, {"tensors", 98}, {"bytes", 3 << 20}};
  EXPECT_THAT(summary_text(with),
              HasSubstr("weights         98 tensors, 3.0 MiB, as safetensors in /a/w.safetensors\n"));
}

TEST(TrainSummary, SaysWhatALostRankHasCost) {
  Json with{{"devices", Json::array()}};
  with["lost_ranks"] = {{{"rank", 1},
                         {"device", "cpu:1"},
                         {"cause", "killed"},
                         {"step", 12},
                         {"resumed_from", 10},
                         {"state", "checkpoint"},
                         {"seconds", 2.5}}};
  const std::string sentence =
      "Rank 1 (cpu:1) was lost after step 12: killed. 2.5 s later the others went on after step 10, from the "
      "checkpoint, and repeated 2 steps.";
  EXPECT_EQ(loss_text(with), sentence);
  EXPECT_THAT(summary_text(with), HasSubstr(wrapped(sentence, 80)));
  with["lost_ranks"][0]["state"] = "start";
  EXPECT_THAT(loss_text(with), HasSubstr("the others went on from the start."));
}

TEST(TrainSummary, SaysOfALossWhatRanksDidThenInPlainWords) {
  EXPECT_EQ(plain_cause("rank 1 went away during gather_parts #34 (label 3, 4096 bytes in parts 0badcafe)"),
            "rank 1 went away while parameters were gathered");
  EXPECT_EQ(plain_cause("rank 2 did not come in time during all_reduce #7 of float32 (label 9, 8 bytes) in this run"),
            "rank 2 did not come in time while values were added up in this run");
  EXPECT_EQ(plain_cause("rank 2 went away during split #3 (label 1, 2 ranks from rank 0 on, list 0a)"),
            "rank 2 went away while ranks connected");
  for (const char* other : {"killed by signal 9 (Killed)", "during a walk #3 (so)", ""})
    EXPECT_EQ(plain_cause(other), other);
  const Json lost{{"rank", 1}, {"cause", "rank 1 went away during barrier #5 (label 4, 0 bytes)"}, {"state", "start"}};
  EXPECT_THAT(loss_text({{"lost_ranks", {lost}}}), HasSubstr(": rank 1 went away while ranks waited for each other. "));
}

TEST(TrainSummary, SaysWhoJoinedAndWhoWasNotTakenIn) {
  Json with = report();
  with["joined_ranks"] = {
      {{"rank", 2}, {"device", "cpu:1"}, {"step", 62}, {"seconds", 0.83}},
      {{"rank", 3}, {"device", "gpu:0"}, {"step", 70}, {"seconds", 1.2}, {"failed", "rank 3 went away"}}};
  EXPECT_EQ(
      join_text(with),
      "Rank 2 (cpu:1) joined after step 62, which took 0.8 s. gpu:0 was not taken in after step 70, which took 1.2 "
      "s: rank 3 went away.");
  EXPECT_EQ(join_text(report()), "");
}

TEST(TrainSummary, EndsWithTheSample) {
  const Json with{{"devices", Json::array()}, {"job", {{"output.prompt", "The "}}}, {"sample", "cat\nsat\x1b[2J"}};
  EXPECT_THAT(summary_text(with), testing::EndsWith("\nsample\n  The cat\n  sat?[2J\n"));
}

TEST(TrainSummary, CompletesTheReport) {
  const auto complete = complete_report(report(), kMachine, {});
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->at("host"), "lab");
  EXPECT_EQ(complete->at("devices")[1].at("model"), "EPYC 9654");
  EXPECT_EQ(complete->at("versions").at("remuda"), version());
  EXPECT_EQ(complete->at("versions").at("torch"), "1.13.0");
}

TEST(TrainSummary, RefusesWhatIsNoReport) {
  for (const char* text : {"null", "[]", "{}", R"({"devices": 3})"}) {
    const auto complete = complete_report(Json::parse(text), kMachine, {});
    ASSERT_FALSE(complete) << text;
    EXPECT_THAT(complete.error().message, HasSubstr("without a report"));
  }
}

}  // namespace
}  // namespace remuda::cli

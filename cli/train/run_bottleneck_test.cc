#include "cli/train/run_bottleneck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::HasSubstr;

Json device(double samples, double compute_s, double wait_s) {
  return {{"id", "cpu:0"}, {"samples", samples}, {"compute_s", compute_s}, {"wait_s", wait_s}};
}

/// Of 1000 steps of these devices.
Json made(std::vector<Json> devices, const Json& job = Json::object()) {
  for (size_t rank = 0; rank < devices.size(); ++rank) devices[rank]["id"] = "cpu:" + std::to_string(rank);
  return {{"devices", devices}, {"steps", 1000}, {"balance", {{"policy", "auto"}}}, {"job", job}};
}

Json with(Json object, const Json& more) {
  object.update(more);
  return object;
}

std::string sentence(const Json& report) { return bottleneck_text(report); }

Limit limit_of(const Json& report) { return bottleneck_of(report).value().limit; }

TEST(RunBottleneck, OfSlowDataSaysHowManyThreadsHideIt) {
  const Json report = made({with(device(1000, 100, 0), {{"data_wait_s", 61}})}, {{"data.workers", "0"}});
  EXPECT_EQ(limit_of(report), Limit::data);
  EXPECT_EQ(sentence(report),
            "Loading data took 61 % of each step: data.workers = 2 would load samples while the devices compute, and "
            "make a step up to 61 % shorter where as many cores are free.");
}

TEST(RunBottleneck, OfThreadsThatAreTooFewSaysHowManyMore) {
  const Json report = made({with(device(1000, 100, 0), {{"data_wait_s", 70}})}, {{"data.workers", "3"}});
  EXPECT_THAT(sentence(report), HasSubstr("data.workers = 10 would"));
  EXPECT_THAT(sentence(report), HasSubstr("up to 70 % shorter"));
}

TEST(RunBottleneck, OfMoreDataThanThreadsCanLoadSaysWhatIsLeft) {
  const Json report = made({with(device(1000, 100, 0), {{"data_wait_s", 99.5}})}, {{"data.workers", "0"}});
  EXPECT_THAT(sentence(report), HasSubstr("data.workers = 64 would"));
  EXPECT_THAT(sentence(report), HasSubstr("up to 98 % shorter")) << "99.5 s by 64 threads are 1.55 s";
}

TEST(RunBottleneck, OfThreadsThatAreEnoughProposesWhatTheyReadFaster) {
  const Json waiting = with(device(1000, 100, 0), {{"data_wait_s", 99.9}});
  EXPECT_THAT(sentence(made({waiting}, {{"data.workers", "64"}, {"data.format", "idx"}})),
              HasSubstr("of each step: smaller images or a faster disk would help."));
  EXPECT_THAT(sentence(made({waiting}, {{"data.workers", "64"}, {"data.format", "tokens"}})),
              HasSubstr("of each step: a faster disk would help."));
}

TEST(RunBottleneck, WhereEachCoreLoadsAlreadyProposesToKeepWhatIsDecoded) {
  const Json waiting = with(device(1000, 100, 0), {{"data_wait_s", 50}});
  EXPECT_THAT(
      sentence(made({waiting}, {{"data.workers", "-1"}, {"data.format", "images"}, {"data.cache_mib", "0"}})),
      HasSubstr(
          "data.cache_mib keeps decoded images in memory, and would make steps after the first epoch up to 50 %"));
  EXPECT_THAT(sentence(made({waiting}, {{"data.workers", "-1"}, {"data.format", "images"}, {"data.cache_mib", "64"}})),
              HasSubstr("smaller images, a faster disk or more cores would help"));
  EXPECT_THAT(sentence(made({waiting}, {{"data.workers", "-1"}, {"data.format", "tokens"}})),
              HasSubstr("data.workers = 1 would"))
      << "none loads now";
}

TEST(RunBottleneck, OfDataNamesTheDeviceThatTheOthersWaitFor) {
  const Json report = made({device(500, 40, 60), with(device(500, 100, 0), {{"data_wait_s", 60}})});
  EXPECT_THAT(sentence(report), HasSubstr("Loading data took 60 % of each step of cpu:1: "));
}

TEST(RunBottleneck, OfAnEvenSplitPredictsTheBalancedOne) {
  Json report = made({device(500, 30, 60), device(500, 90, 0)});
  report["balance"]["policy"] = "even";
  EXPECT_EQ(limit_of(report), Limit::imbalance);
  EXPECT_EQ(sentence(report),
            "Imbalance took 50 % of each step: cpu:0 waited for others 67 % of its time, as the split is even; by the "
            "speeds of this run, balance.policy = \"auto\" would make a step about 50 % shorter.");
}

TEST(RunBottleneck, CountsTheStepsThatTheTimesAreOf) {
  Json report = made({with(device(1000, 100, 0), {{"data_wait_s", 70}})}, {{"data.workers", "3"}});
  report["checkpoints"]["resumed_from"] = 997;
  EXPECT_EQ(sentence(report), "") << "of three steps nothing is known";
  report["checkpoints"]["resumed_from"] = 996;
  EXPECT_NE(sentence(report), "");
}

TEST(RunBottleneck, JudgesTheSplitByTheStepsSinceItWasMade) {
  Json report = made({device(500, 30, 60), device(500, 90, 0)});
  EXPECT_THAT(sentence(report), HasSubstr("as speeds changed faster"));
  const Json loss{{"step", 960}, {"resumed_from", 950}, {"seconds", 2.5}};
  report["lost_ranks"] = {loss, loss};
  EXPECT_THAT(sentence(report), HasSubstr("and had 50: a longer run"));
  report["checkpoints"]["resumed_from"] = 1000;
  EXPECT_NE(sentence(report), "") << "ten steps were made twice";
  report["lost_ranks"] = 7;
  EXPECT_EQ(sentence(report), "");
}

TEST(RunBottleneck, OfAnEvenSplitCountsTheWaitingForSamples) {
  Json report =
      made({with(device(500, 60, 45), {{"data_wait_s", 40}}), with(device(500, 100, 5), {{"data_wait_s", 0}})});
  report["balance"]["policy"] = "even";
  EXPECT_THAT(sentence(report), HasSubstr("about 24 % shorter")) << "500 in 60 s and in 100 s are 1000 in 75 s";
}

TEST(RunBottleneck, APredictionIsNeverMoreThanTheShare) {
  Json report = made({device(500, 28, 60), device(500, 90, 1)});  // their clocks differ
  report["balance"]["policy"] = "even";
  EXPECT_THAT(sentence(report), HasSubstr("Imbalance took 52 % of each step"));
  EXPECT_THAT(sentence(report), HasSubstr("about 52 % shorter"));
}

TEST(RunBottleneck, OfABalancedRunTellsWhyDevicesWaitAllTheSame) {
  Json report = made({device(500, 80, 20), device(500, 80, 20)});
  report["communication_s"] = 1;
  EXPECT_EQ(limit_of(report), Limit::imbalance) << "they wait in turns";
  EXPECT_NEAR(bottleneck_of(report)->share, 0.19, 1e-9);
  EXPECT_THAT(sentence(report), HasSubstr("as speeds changed faster than the split can follow"));
  report["balance"]["micro_batch"] = 32;
  EXPECT_THAT(sentence(report), HasSubstr("a smaller train.micro_batch"));
}

/// Two devices, the second of which has no samples, and computes longest all the same.
Json slow_state(const Json& more = Json::object()) {
  Json report = made({with(device(1000, 30, 60), {{"alone_samples_per_s", 30}, {"state_share", 0.5}}),
                      with(device(0, 90, 0), {{"alone_samples_per_s", 3}, {"state_share", 0.5}})});
  report.update(more);
  return report;
}

TEST(RunBottleneck, OfStateThatASlowDeviceUpdatesNamesIt) {
  EXPECT_EQ(limit_of(slow_state()), Limit::imbalance);
  EXPECT_EQ(sentence(slow_state()),
            "Imbalance took 67 % of each step: cpu:0 waited for others 67 % of its time, as cpu:1 updates 50 % of the "
            "parameters, which takes it longer than its samples; balance.state_shares = [30.0, 3.0], by what each "
            "does alone, would leave less of that to it.");
  Json report = slow_state();
  report["devices"][1].update({{"samples", 900}, {"alone_samples_per_s", 10.5}});  // 86 s of its 90
  EXPECT_THAT(sentence(report), HasSubstr("as speeds changed faster")) << "its samples took the time";
  report["devices"][1].erase("alone_samples_per_s");
  EXPECT_THAT(sentence(report), HasSubstr("as speeds changed faster")) << "nobody knows what took it";
  report = slow_state();
  report["devices"][1]["state_share"] = 0;
  EXPECT_THAT(sentence(report), HasSubstr("as speeds changed faster")) << "it updates nothing";
  report = slow_state();
  report["devices"][0].erase("alone_samples_per_s");
  EXPECT_THAT(sentence(report), HasSubstr("which takes it longer than its samples; less of balance.state_shares for "
                                          "cpu:1 would leave less of that to it."));
}

TEST(RunBottleneck, ASplitThatHadNoTimeToSettleIsNotJudged) {
  Json report = made({device(500, 80, 20), device(500, 80, 20)});
  report["communication_s"] = 1;
  const auto after = [&](int steps) {
    report["steps"] = steps;
    return sentence(report);
  };
  EXPECT_THAT(after(12), HasSubstr(" of its time; the split takes some 20 steps to come near its best, and had 12."));
  EXPECT_THAT(after(58), HasSubstr(" of its time; the split takes some 20 steps to come near its best, and had 58: a "
                                   "longer run would have less of that."));
  EXPECT_THAT(after(200), HasSubstr("as speeds changed faster than the split can follow"));
}

/// What devices do together, and what each does alone, with samples that are there at once.
Json together(double all, const std::vector<double>& alone) {
  std::vector<Json> devices;
  for (const double one : alone) devices.push_back(with(device(500, 50, 50), {{"alone_samples_per_s", one}}));
  Json report = made(devices);
  report["samples_per_s"] = all;
  return report;
}

TEST(RunBottleneck, SlowerTogetherThanAloneSaysWhatToLeaveOut) {
  const Json two = together(918, {1370, 312});
  EXPECT_EQ(limit_of(two), Limit::devices);
  EXPECT_NEAR(bottleneck_of(two)->share, 1 - 918 / 1370.0, 1e-9);
  EXPECT_EQ(sentence(two),
            "Slower together than alone: cpu:0 alone makes 1370 samples/s, both together 918. cpu:1, with 312 alone, "
            "costs more than it gives: without it, by --devices cpu:0, there are about 49 % more samples/s.");
  EXPECT_EQ(
      sentence(together(500, {100, 1000, 90.25})),
      "Slower together than alone: cpu:1 alone makes 1000 samples/s, all 3 together 500. cpu:0, with 100 alone, "
      "and cpu:2, with 90.2 alone, cost more than they give: without them, by --devices cpu:1, there are about 100 % "
      "more samples/s.");
  EXPECT_NE(limit_of(together(1340, {1370, 312})), Limit::devices) << "no more than what speeds differ by";
  EXPECT_EQ(bottleneck_json(two)["limit"], "devices");
}

TEST(RunBottleneck, RanksOfOneDeviceAreLeftOutByNoList) {
  Json shared = together(918, {1370, 312});
  shared["devices"][1]["id"] = "cpu:0";
  EXPECT_THAT(sentence(shared), HasSubstr("cpu:0 #1 alone makes 1370 samples/s"));
  EXPECT_THAT(sentence(shared), HasSubstr("cpu:0 #2, with 312 alone, costs more than it gives: without it there are"));
}

TEST(RunBottleneck, AloneADeviceWaitsForItsSamplesToo) {
  Json report = together(918, {1370, 312});
  for (Json& one : report["devices"]) one["data_wait_s"] = 0.5;  // a millisecond a sample
  EXPECT_NE(limit_of(report), Limit::devices) << "1370 in a second are 578 with the wait for them";
}

TEST(RunBottleneck, SaysSlowerTogetherOnlyWhereNothingElseExplainsIt) {
  const auto with_field = [](const char* key, const Json& value) {
    Json report = together(918, {1370, 312});
    report[key] = value;
    return report;
  };
  EXPECT_NE(limit_of(with_field("lost_ranks", {{{"step", 5}}})), Limit::devices) << "the speed is of others, too";
  EXPECT_NE(limit_of(with_field("joined_ranks", {{{"step", 5}}})), Limit::devices);
  EXPECT_NE(limit_of(with_field("steps", 12)), Limit::devices) << "the split was not near its best";
  EXPECT_NE(limit_of(with_field("samples_per_s", nullptr)), Limit::devices);
  Json report = together(918, {1370, 312});
  report["devices"][1]["role"] = "preprocess";
  EXPECT_NE(limit_of(report), Limit::devices) << "of roles there is a sentence of its own";
  EXPECT_NE(limit_of(together(918, {1370})), Limit::devices) << "it was alone";
}

TEST(RunBottleneck, AnEvenSplitThatMakesItSlowerIsChangedFirst) {
  Json report = together(918, {1370, 900});
  report["devices"][0].update({{"compute_s", 20}, {"wait_s", 80}});
  report["devices"][1].update({{"compute_s", 100}, {"wait_s", 0}});
  report["balance"]["policy"] = "even";
  EXPECT_THAT(sentence(report), HasSubstr("balance.policy = \"auto\" would make a step about 67 % shorter"));
  report["samples_per_s"] = 300;
  EXPECT_EQ(limit_of(report), Limit::imbalance) << "were it still slower, auto would leave a device out";
  report["devices"][0].update({{"compute_s", 50}, {"wait_s", 50}});
  report["devices"][1].update({{"compute_s", 50}, {"wait_s", 50}});
  report["communication_s"] = 50;
  EXPECT_EQ(limit_of(report), Limit::devices) << "no other split would help";
}

TEST(RunBottleneck, OfASlowLinkSaysWhatFewerBytesSave) {
  Json report = made({device(500, 50, 50), device(500, 52, 48)});
  report.update({{"transport", "tcp"}, {"parameters_sent_as", "float32"}, {"gradients_sent_as", "float32"}});
  EXPECT_EQ(limit_of(report), Limit::communication);
  EXPECT_EQ(
      sentence(report),
      "Communication took 48 % of each step, over tcp: train.gradients = \"bf16\" would send 25 % fewer bytes, "
      "and make a step about 12 % shorter; train.compression = \"auto\" finds out whether packing what hosts send "
      "saves more, and a faster link or fewer hosts help, too.");
  report["parameters_sent_as"] = "bf16";
  EXPECT_THAT(sentence(report), HasSubstr("33 % fewer bytes, and make a step about 16 % shorter"));
}

TEST(RunBottleneck, OfALinkThatCarriesFewBytesAlreadyProposesFewerExchanges) {
  Json report = made({device(500, 50, 50), device(500, 50, 50)});
  report.update({{"transport", "tcp"}, {"gradients_sent_as", "bf16"}});
  EXPECT_THAT(sentence(report), HasSubstr("with a train.global_batch of twice the samples there are half as many "
                                          "exchanges, and about 33 % more samples/s"));
  report.update({{"gradients_sent_as", "float32"}, {"device_collectives", {{"library", "NCCL"}}}});
  EXPECT_THAT(sentence(report), HasSubstr("train.global_batch")) << "these do not go through memory of the host";
  report.erase("device_collectives");
  report["transport"] = "tcp";
  report["compression"] = {{"after_steps", 100}};
  EXPECT_THAT(sentence(report), HasSubstr("train.global_batch of twice")) << "one bit is less than 16";
  report.erase("compression");
  report["transport"] = "shared memory, encrypted tcp between hosts";
  EXPECT_THAT(sentence(report), HasSubstr("train.global_batch of twice")) << "sums go between hosts, in float32";
  report["transport"] = "shared memory";
  EXPECT_THAT(sentence(report), HasSubstr("over shared memory: with a train.global_batch"));
}

TEST(RunBottleneck, ProposesCompressionOnlyWhereItMayBeUsed) {
  const auto said = [](const Json& job, const char* role) {
    Json report = made({device(500, 50, 50), with(device(500, 50, 50), {{"role", role}})}, job);
    report["transport"] = "shared memory, encrypted tcp between hosts";
    return sentence(report);
  };
  const auto proposed = HasSubstr("train.compression = \"auto\"");
  EXPECT_THAT(said({}, "compute"), proposed);
  EXPECT_THAT(said({{"elastic.ranks_lost", "0"}, {"memory.parameters", "whole"}}, "preprocess"), proposed);
  EXPECT_THAT(said({{"elastic.ranks_lost", "1"}}, "compute"), Not(proposed));
  EXPECT_THAT(said({{"memory.parameters", "sharded"}}, "compute"), Not(proposed));
  EXPECT_THAT(said({{"train.compression", "powersgd"}}, "compute"), Not(proposed));
  EXPECT_THAT(said({{"train.compression", "auto"}}, "compute"), Not(proposed));
  EXPECT_THAT(said({}, "state"), Not(proposed));
  EXPECT_THAT(said({}, "state"), HasSubstr("; a faster link or fewer hosts help, too."));
}

TEST(RunBottleneck, OfMemorySaysWhatComputesAgain) {
  const auto report = [](const char* recompute) {
    return made({with(device(1000, 100, 0), {{"recompute_s", 24}, {"pieces", 4}})}, {{"memory.recompute", recompute}});
  };
  EXPECT_EQ(limit_of(report("blocks")), Limit::memory);
  EXPECT_THAT(sentence(report("blocks")),
              HasSubstr("Computing again for want of memory took 24 % of each step: memory.recompute = \"auto\" does"));
  EXPECT_THAT(sentence(with(report("auto"), {{"recomputes", true}})),
              HasSubstr("cpu:0 has no room for what its blocks"));
  EXPECT_THAT(sentence(report("none")), HasSubstr("memory.accumulate = 4 would save the steps that were repeated"));
}

TEST(RunBottleneck, OfComputingPredictsOneMoreDevice) {
  const Json report = made({device(3000, 97, 3), device(1000, 98, 2)}, {{"train.precision", "fp32"}});
  EXPECT_EQ(limit_of(report), Limit::compute);
  EXPECT_EQ(sentence(report),
            "Computing took 97 % of each step: only more or faster devices, or train.precision = \"auto\" where they "
            "have a faster type, make it shorter; one more like cpu:0 would make it up to 42 % shorter.");
}

TEST(RunBottleneck, PartsAddUpToTheStep) {
  Json mixed = made({with(device(700, 60, 40), {{"data_wait_s", 5}}),
                     with(device(300, 85, 15), {{"data_wait_s", 20}, {"recompute_s", 13}})});
  mixed["communication_s"] = 9;
  const StepParts parts = step_parts(mixed).value();
  for (const double part : {parts.data, parts.imbalance, parts.communication, parts.memory, parts.compute})
    EXPECT_GT(part, 0);
  EXPECT_NEAR(parts.data + parts.imbalance + parts.communication + parts.memory + parts.compute, 1, 1e-9);
  EXPECT_NEAR(parts.data, 0.2, 1e-9);
  EXPECT_NEAR(parts.communication, 0.09, 1e-9);
  EXPECT_EQ(bottleneck_json(mixed)["parts"]["data"], parts.data);
}

TEST(RunBottleneck, OfOneDeviceNobodyWaits) {
  const Json report = made({with(device(1000, 80, 20), {{"data_wait_s", 7}})});
  EXPECT_EQ(limit_of(report), Limit::compute);
  EXPECT_NEAR(step_parts(report)->data, 7.0 / 80, 1e-9);
  EXPECT_EQ(step_parts(report)->communication, 0);
}

TEST(RunBottleneck, SaysNothingOfWhatHasNoTimes) {
  EXPECT_FALSE(bottleneck_of(Json()));
  EXPECT_FALSE(bottleneck_of(made({})));
  EXPECT_FALSE(bottleneck_of(made({device(0, 0, 0), device(0, 0, 5)})));
  EXPECT_FALSE(bottleneck_of(with(made({device(9, 1, 1)}), {{"steps", 3}}))) << "their start was all of it";
  EXPECT_FALSE(bottleneck_of({{"devices", 7}, {"steps", 100}}));
  EXPECT_TRUE(bottleneck_json(made({})).is_null());
}

TEST(RunBottleneck, TakesAnyReport) {
  const Json odd = Json::parse(R"({"steps": 10, "job": 3, "balance": {"policy": 7}, "devices": [
      5, {"compute_s": "much"}, {"compute_s": 5, "data_wait_s": 9, "recompute_s": 7, "wait_s": -2, "samples": null}]})");
  const StepParts parts = step_parts(odd).value();
  EXPECT_LE(parts.data, 1);
  EXPECT_EQ(parts.memory, 0);
  EXPECT_NE(sentence(odd), "");
}

}  // namespace
}  // namespace remuda::cli

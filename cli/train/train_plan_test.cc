#include "cli/train/train_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/train/testing/lab.h"

namespace remuda::cli {
namespace {

using testing::ContainsRegex;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

TEST(TrainPlan, FollowsTheSpeedsThatWereMeasured) {
  const TrainPlan plan = make_plan(job_on({{"gpu:0"}, {"gpu:1"}}), lab(), {300.0, 100.0});
  EXPECT_THAT(plan.shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_THAT(plan.step_s, Optional(DoubleEq(0.3)));
  EXPECT_THAT(plan.samples_per_s, Optional(DoubleEq(400)));
}

/// 64 samples of 1 and of 3 ms, updates of 10 and of 30 ms: 48 and 16, and 3/4 and 1/4 of the state.
TEST(TrainPlan, SharesSamplesAndStateOutByTheLawOfTheRun) {
  job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0"}});
  job.train.global_batch = 64;
  const StepCost fast{{0, 1e-3}, 10e-3}, slow{{0, 3e-3}, 30e-3};
  const auto plan = [&] { return make_plan(job, lab(), {500.0, 100.0}, {}, {fast, slow}); };
  EXPECT_THAT(plan().shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_NEAR(plan().step_s.value(), 48e-3 + 7.5e-3, 1e-12);
  EXPECT_NEAR(plan().samples_per_s.value(), 64 / 55.5e-3, 1e-6);
  EXPECT_EQ(to_json(plan())["state_shares"], Json({0.75, 0.25}));
  const std::string text = plan_text(job, lab(), plan(), "");
  EXPECT_THAT(text, HasSubstr("state gpu:0 75.0 %, cpu:0 25.0 %: of the parameters, that each updates"));
  EXPECT_THAT(text, HasSubstr("0.048 s for the longest part and 0.0075 s for the\nlongest update"));
  job.train.micro_batch = 16;
  EXPECT_THAT(plan().shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25))) << "whole ones";
  job.balance.state_shares = {1, 1};
  EXPECT_THAT(plan().state_shares, testing::IsEmpty()) << "the job gives them";
  job.balance = {.policy = balance::BalancePolicy::even};
  EXPECT_THAT(plan().shares, ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  EXPECT_THAT(make_plan(job_on({{"gpu:0"}, {"cpu:0"}}), lab(), {300.0, 100.0}, {}, {fast, std::nullopt}).state_shares,
              testing::IsEmpty());
}

/// As above, of devices with memory.
TEST(TrainPlan, LeavesTheStateByMemoryWhereTheRunDoes) {
  Inventory machine = lab();
  machine.devices[2].memory_bytes = int64_t{40} << 30;
  job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0"}});
  job.train.global_batch = 64;
  const StepCost fast{{0, 1e-3}, 10e-3}, slow{{0, 3e-3}, 30e-3};
  const auto plan = [&] { return make_plan(job, machine, {500.0, 100.0}, {}, {fast, slow}); };
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25))) << "12 % more samples/s";
  job.train.compression = job::Compression::automatic;
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  EXPECT_THAT(plan().shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_NEAR(plan().step_s.value(), 48e-3 + 15e-3, 1e-12);
  job.train.compression = job::Compression::none;
  job.engine.fewer_waits = job::Switch::on;
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  job.engine.fewer_waits = job::Switch::off;
  machine.devices[2].memory_bytes = int64_t{10} << 30;
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.8), DoubleEq(0.2))) << "a step is 1 % longer so";
  machine.devices.push_back({.id = "cpu:1", .index = 1, .cores = std::vector{2, 3}, .memory_bytes = int64_t{70} << 30});
  EXPECT_THAT(plan().state_shares, ElementsAre(DoubleEq(0.75), DoubleEq(0.25))) << "its cores' part of the host's";
}

TEST(TrainPlan, DevicesOfOtherRolesTakeNoSamples) {
  using balance::Role;
  job::TrainJob job =
      job_on({{"gpu:0"}, {.use = "gpu:1", .role = Role::preprocess}, {.use = "cpu:0", .role = Role::state}});
  const TrainPlan measured = make_plan(job, lab(), {300.0, 100.0, std::nullopt});
  EXPECT_THAT(measured.shares, ElementsAre(1, 0, 0));
  EXPECT_THAT(measured.samples_per_s, Optional(DoubleEq(300)));
  EXPECT_THAT(make_plan(job, lab(), {{}, {}, {}}).shares, ElementsAre(1, 0, 0));
  const StepMemory known{.held_bytes = 1000, .fixed_bytes = -100, .per_sample_bytes = 10};
  EXPECT_EQ(make_plan(job, lab(), {{}, {}, {}}, {known, known, known}).memory.at(2)->peak_bytes, 1000);
  job.balance.policy = balance::BalancePolicy::even;
  job.devices[1].role = Role::automatic;
  EXPECT_THAT(make_plan(job, lab(), {{}, {}, {}}).shares, ElementsAre(DoubleEq(0.5), DoubleEq(0.5), 0));
  const std::string text = plan_text(job, lab(), measured, "");
  EXPECT_THAT(text, HasSubstr("   2  cpu:0  "));
  EXPECT_THAT(text, ContainsRegex("cpu:0 .* state +0 "));
  EXPECT_THAT(text, HasSubstr("measured; devices that have\nanother role than to compute take no samples\n"));
  EXPECT_THAT(text, HasSubstr("state cpu:0: no samples; optimizer state"));
  EXPECT_THAT(text, HasSubstr("roles: what they gain is predicted"));
  EXPECT_THAT(text, Not(HasSubstr("preprocess gpu:1")));
}

TEST(TrainPlan, CutsNoDeviceWithARoleIn80Columns) {
  const job::TrainJob job =
      job_on({{"gpu:0"}, {.use = "cpu:0", .slowdown = 12.5, .role = balance::Role::preprocess}, {"gpu:1"}});
  const std::string text = plan_text(job, lab(), make_plan(job, lab(), {{}, {}, {}}), "");
  EXPECT_THAT(text, ContainsRegex("1  cpu:0 \\(slowed 12.5x\\)  EPYC +preprocess +0 "));
}

TEST(TrainPlan, OfMicroBatchesSplitsWholeOnes) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  job.train.micro_batch = 20;
  job.balance.unit = job::Unit::microbatches;
  const TrainPlan plan = make_plan(job, lab(), {300.0, 100.0});
  EXPECT_THAT(plan.shares, ElementsAre(DoubleEq(5.0 / 6), DoubleEq(1.0 / 6)));
  EXPECT_EQ(plan.shares_reason,
            "the speeds that earlier runs of this job measured; in whole micro-batches of 20 samples");
  EXPECT_THAT(plan.step_s, Optional(DoubleEq(100 / 300.0)));
}

TEST(TrainPlan, OfRanksThatShareADeviceDividesIt) {
  const job::TrainJob job = job_on({{"gpu:0", 1, true}, {"gpu:1"}, {"gpu:0", 3, true}});
  const TrainPlan plan = make_plan(job, lab(), {std::nullopt, std::nullopt, std::nullopt});
  EXPECT_DOUBLE_EQ(plan.shares[0], 3 * plan.shares[2]);
  const double alone = make_plan(job_on({{"gpu:0"}, {"gpu:1"}}), lab(), {std::nullopt, std::nullopt}).shares[0];
  EXPECT_NEAR(plan.shares[0] / plan.shares[1], alone / (1 - alone) / 2, 1e-9);
  EXPECT_EQ(plan.speed_reason, "no run has measured this job on gpu:0 #1, gpu:1, gpu:0 #2 yet");
  const std::string text = plan_text(job, lab(), make_plan(job, lab(), {300.0, 100.0, 100.0}), "named in job.toml");
  EXPECT_THAT(text, HasSubstr("   0  gpu:0 #1 "));
  EXPECT_THAT(text, HasSubstr("   2  gpu:0 #2 (slowed 3.0x)"));
  EXPECT_THAT(text, HasSubstr("alone; ranks that share one slow each other, which is not in it\n"));
  EXPECT_THAT(text, HasSubstr("which ranks on one device share"));
}

TEST(TrainPlan, SaysHowBucketsWillGoBetweenTheRanks) {
  Inventory machine = lab();
  const auto text = [&](const job::TrainJob& job) {
    return plan_text(job, machine, make_plan(job, machine, {std::nullopt, std::nullopt}), "named in job.toml");
  };
  EXPECT_THAT(text(job_on({{"gpu:0"}, {"gpu:1"}})), HasSubstr("from device to device, if the library"));
  EXPECT_THAT(text(job_on({{"gpu:0"}, {"cpu:0"}})), HasSubstr("through memory of the host: cpu:0 is a CPU\n"));
  EXPECT_THAT(text(job_on({{"gpu:0", 1, true}, {"gpu:0", 1, true}})), HasSubstr("host: ranks share a device\n"));
  job::TrainJob off = job_on({{"gpu:0"}, {"gpu:1"}});
  off.train.device_collectives = job::Switch::off;
  EXPECT_THAT(text(off), HasSubstr("host: train.device_collectives is \"off\"\n"));
  job::TrainJob deterministic = job_on({{"gpu:0"}, {"gpu:1"}});
  deterministic.train.deterministic = job::Switch::on;
  EXPECT_THAT(text(deterministic), HasSubstr("host: train.deterministic is set\n"));
  job::TrainJob elastic = job_on({{"gpu:0"}, {"gpu:1"}});
  elastic.elastic.ranks_lost = 1;
  EXPECT_THAT(text(elastic), HasSubstr("host: elastic.ranks_lost is set\n"));
  machine.devices[1].vendor = "AMD";
  EXPECT_THAT(text(job_on({{"gpu:0"}, {"gpu:1"}})), HasSubstr("host: gpu:0 and gpu:1 have different makers\n"));
  const job::TrainJob one = job_on({{"gpu:0"}});
  EXPECT_THAT(plan_text(one, machine, make_plan(one, machine, {std::nullopt}), ""),
              HasSubstr("stay on the only device"));
}

TEST(TrainPlan, SaysWhichSpeedIsNotKnown) {
  const TrainPlan plan = make_plan(job_on({{"gpu:0"}, {"gpu:1", 2}}), lab(), {300.0, std::nullopt});
  const double first = 108 * 1410, second = 40 * 1590 / 2.0;
  EXPECT_THAT(plan.shares, ElementsAre(DoubleEq(first / (first + second)), DoubleEq(second / (first + second))));
  EXPECT_THAT(plan.shares_reason, HasSubstr("multiprocessors times highest clock"));
  EXPECT_EQ(plan.step_s, std::nullopt);
  EXPECT_EQ(plan.speed_reason, "no run has measured this job on gpu:1 yet");
  EXPECT_FALSE(to_json(plan).contains("samples_per_s")) << "not known is not 0";
}

TEST(TrainPlan, OfAnEvenOrFixedSplitWaitsForTheSlowest) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  job.balance.policy = balance::BalancePolicy::even;
  EXPECT_THAT(make_plan(job, lab(), {300.0, 100.0}).step_s, Optional(DoubleEq(0.6)));
  job.balance = {balance::BalancePolicy::fixed, {2, 1}};
  const TrainPlan fixed = make_plan(job, lab(), {300.0, 100.0});
  EXPECT_THAT(fixed.shares, ElementsAre(DoubleEq(2.0 / 3), DoubleEq(1.0 / 3)));
  EXPECT_THAT(fixed.step_s, Optional(DoubleEq(0.4)));
}

TEST(TrainPlan, AsTextHasAReasonForEachFigure) {
  const job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0", 2}});
  EXPECT_EQ(plan_text(job, lab(), make_plan(job, lab(), {300.0, 100.0}), "named with --devices"),
            "rank  device               model   share  samples  memory         precision\n"
            "   0  gpu:0                A100   75.0 %       90  30.0 GiB free  float32\n"
            "   1  cpu:0 (slowed 2.0x)  EPYC   25.0 %       30  -              float32\n"
            "\n"
            "devices: named with --devices\n"
            "shares: the speeds that earlier runs of this job measured\n"
            "step 0.3 s, 400 samples/s: the speeds that earlier runs measured of each device\n"
            "alone\n"
            "memory: what the devices have is shown; what a step takes of gpu:0, cpu:0 is\n"
            "measured before the first one, as no run of this job on these devices has\n"
            "measured it yet\n"
            "precision: training computes in float32 on each device, though gpu:0 could\n"
            "compute in bf16 and fp16\n"
            "buckets: through memory of the host: cpu:0 is a CPU\n");
}

constexpr double kGiB = 1 << 30;

TEST(TrainPlan, SaysWhatAStepTakesOfTheMemoryAndInHowManyPiecesItFits) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  const StepMemory measured{.held_bytes = 10 * kGiB, .fixed_bytes = kGiB, .per_sample_bytes = kGiB / 2};
  const auto plan = [&] { return make_plan(job, lab(), {300.0, 100.0}, {measured, std::nullopt}); };
  const auto peak = [&] { return plan().memory.at(0).value().peak_bytes / kGiB; };
  EXPECT_DOUBLE_EQ(peak(), 10 + 1 + 23 / 2.0) << "in 4 pieces: 45 samples at a time would take more than the 30 free";
  EXPECT_THAT(plan_text(job, lab(), plan(), ""),
              HasSubstr("memory gpu:0 22.5 GiB in 4 pieces: what a step takes at most, as an earlier run\n"
                        "measured it; what a step takes of gpu:1 is measured before the first one, as no\n"));
  job.memory.accumulate = 9;
  EXPECT_DOUBLE_EQ(peak(), 10 + 1 + 5);
  job.memory.accumulate = 1;
  job.train.micro_batch = 20;  // of which it gets 5, and none is cut
  EXPECT_DOUBLE_EQ(peak(), 10 + 1 + 10);
  EXPECT_EQ(plan().memory.at(0)->pieces, 5);
}

TEST(TrainPlan, SaysWhatItTakesToFetchShardedBlocks) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  job.memory.parameters = job::Held::sharded;
  StepMemory measured{.held_bytes = kGiB};
  const auto text = [&] { return plan_text(job, lab(), make_plan(job, lab(), {1.0, 1.0}, {measured, measured}), ""); };
  EXPECT_THAT(
      text(),
      HasSubstr("blocks: each device holds its part; what it takes to fetch the rest is measured\nat the start\n"));
  measured.fetched_bytes = kGiB;
  measured.fetch_s = 0.25;
  EXPECT_THAT(text(), HasSubstr("blocks 1.0 GiB in 250 ms: what a pass fetches from the other devices, beside"));
  EXPECT_THAT(text(), HasSubstr("buckets: through memory of the host: memory.parameters is \"sharded\"\n"));
}

TEST(TrainPlan, OfADeviceWithoutKnownMemoryCountsItsNeedOnly) {
  const job::TrainJob job = job_on({{"cpu:0"}});
  const StepMemory measured{.held_bytes = kGiB, .fixed_bytes = 0, .per_sample_bytes = kGiB / 10};
  EXPECT_THAT(plan_text(job, lab(), make_plan(job, lab(), {1.0}, {measured}), ""),
              HasSubstr("\nmemory cpu:0 13.0 GiB: what a step takes at most, as an earlier run measured it\n"));
}

TEST(TrainPlan, SaysInWhichTypeGradientsAreSentWhereItIsNotTheirOwn) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  const auto text = [&] { return plan_text(job, lab(), make_plan(job, lab(), {1.0, 1.0}), ""); };
  EXPECT_THAT(text(), Not(HasSubstr("\ngradients")));
  job.train.gradients = job::Precision::bf16;
  EXPECT_THAT(text(), HasSubstr("\ngradients bf16: as train.gradients says"));
  job.devices.pop_back();
  EXPECT_THAT(plan_text(job, lab(), make_plan(job, lab(), {1.0}), ""), Not(HasSubstr("\ngradients")))
      << "nobody to send them to";
}

TEST(TrainPlan, SaysWhereBytesAreCompressed) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}});
  const auto text = [&] { return plan_text(job, lab(), make_plan(job, lab(), {1.0, 1.0}), ""); };
  EXPECT_THAT(text(), Not(HasSubstr("compression")));
  job.train.compression = job::Compression::one_bit;
  EXPECT_THAT(text(), HasSubstr("\ncompression 1-bit: between hosts, after a warm-up; on one host nothing is"));
  job.train.compression = job::Compression::powersgd;
  EXPECT_THAT(text(), HasSubstr("\ncompression powersgd: between hosts, after a warm-up"));
  job.train.compression = job::Compression::automatic;
  EXPECT_THAT(text(), HasSubstr("\ncompression auto: unknown until the first steps are made, and each way to"));
}

TEST(TrainPlan, NamesThePrecisionThatTheRunWillChoose) {
  job::TrainJob job = job_on({{"gpu:0"}, {"gpu:1"}, {"cpu:0"}});
  job.train.precision = job::Precision::automatic;
  Inventory machine = lab();
  machine.devices[1].compute_capability = "7.0";
  const auto text = [&] { return plan_text(job, machine, make_plan(job, machine, {1.0, 1.0, 1.0}), ""); };
  EXPECT_THAT(text(), ContainsRegex("A100 [^\n]*bf16\n[^\n]* T4 [^\n]*fp16\n[^\n]* EPYC [^\n]*float32\n"));
  machine.devices[1].compute_capability = "6.1";
  EXPECT_THAT(text(), ContainsRegex("T4 [^\n]*float32\n"));
}

TEST(TrainPlan, OfShortTypesOnCpusAsksTheWorkersLibtorch) {
  job::TrainJob job = job_on({{"cpu:0"}});
  TrainPlan plan = make_plan(job, lab(), {1.0});
  EXPECT_FALSE(depends_on_libtorch(job, lab()));
  job.train.precision = job::Precision::fp16;
  EXPECT_TRUE(depends_on_libtorch(job, lab()));
  EXPECT_TRUE(check_precision(job, lab(), plan)) << "what is not known is not refused";
  EXPECT_THAT(plan_text(job, lab(), plan, ""), ContainsRegex("EPYC [^\n]*fp16\n"));
  plan.worker = WorkerAbilities{"1.13.0", {"float32", "bf16"}};
  EXPECT_EQ(check_precision(job, lab(), plan).error().message,
            "no device of this job computes in fp16 with libtorch 1.13.0 and adds up in float32; take train.precision "
            "= \"auto\" or \"fp32\"");
  job.devices = {{"gpu:0"}, {"cpu:0"}};
  plan.shares = {0.5, 0.5};
  EXPECT_TRUE(check_precision(job, lab(), plan)) << "the GPU does";
  const std::string text = plan_text(job, lab(), plan, "");
  EXPECT_THAT(text, ContainsRegex("A100 [^\n]*fp16\n[^\n]* EPYC [^\n]*float32\n"));
  EXPECT_THAT(
      text,
      HasSubstr("on devices that can; libtorch 1.13.0 has no\nfp16 on this machine's CPUs that adds up in float32\n"));
  plan.worker->cpu_types.emplace_back("fp16");
  EXPECT_THAT(plan_text(job, lab(), plan, ""), ContainsRegex("EPYC [^\n]*fp16\n"));
  job.train.precision = job::Precision::bf16;
  EXPECT_THAT(plan_text(job, lab(), plan, ""), ContainsRegex("EPYC [^\n]*bf16\n"));
  plan.worker->cpu_types = {"float32"};
  EXPECT_THAT(plan_text(job, lab(), plan, ""), ContainsRegex("EPYC [^\n]*float32\n"));
  job.devices = {{"gpu:0"}};
  EXPECT_FALSE(depends_on_libtorch(job, lab()));
}

}  // namespace
}  // namespace remuda::cli

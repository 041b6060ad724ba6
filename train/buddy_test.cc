// Ranks that are lost after some steps: those that are left take up the run from copies in memory.
#include "train/buddy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/precision.h"
#include "train/testing/script_models.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

constexpr int kCopiedImages = 250, kCopiedBatch = 60, kCopiedEpoch = 5, kCopiedSteps = 3 * kCopiedEpoch;

class BuddyTest : public ::testing::Test {
 protected:
  BuddyTest() {
    job_.data = testing::write_samples(folder_, {.input = {1, 12, 12, 5, 0}}, kCopiedImages);
    job_.model = {.path = folder_.path("model.pt")};
    testing::write_two_layers(job_.model.path, 12 * 12);
    job_.train = {.epochs = 3, .global_batch = kCopiedBatch, .optimizer = job::Optimizer::adamw, .learning_rate = 0.01};
    job_.balance = {balance::BalancePolicy::fixed, {1, 2, 1}};
    job_.devices = {{"cpu:0"}, {"cpu:1"}, {"cpu:2"}};
    job_.elastic = {.ranks_lost = 2, .buddy = true};
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    torch::Tensor parameters;
    std::string error;                  ///< of rank 0
    std::vector<Inheritance> bequests;  ///< of all
  };

  /// All ranks of a job. `inherited`: of each, or none.
  Finished run(const job::TrainJob& job, std::vector<Inheritance> inherited = {}) {
    Finished finished;
    const std::atomic<bool> leaving = leaves_;
    const Events events(-1);
    inherited.resize(job.devices.size());
    finished.bequests.resize(job.devices.size());
    comm::run_ranks(int(job.devices.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto rank = size_t(communicator.rank());
      const auto trainer = Trainer::create(job, communicator, events, leaving, {.inherited = inherited[rank]});
      const auto report = !trainer ? tl::unexpected(trainer.error()) : only_met_ ? RunReport() : (*trainer)->run();
      if (report) finished.bequests[rank] = (*trainer)->bequest();
      if (rank != 0) return;
      finished.error = report ? "" : report.error().message;
      if (!report) return;
      finished.report = *report;
      std::vector<torch::Tensor> all;
      for (const auto& one : (*trainer)->model().parameters()) all.push_back(one.flatten());
      finished.parameters = torch::cat(all).detach().clone();
    });
    return finished;
  }

  /// The first steps of the run, by all.
  std::vector<Inheritance> run_until(int step) {
    job::TrainJob first = job_;
    first.train.max_steps = step;
    Finished begun = run(first);
    EXPECT_EQ(begun.error, "");
    return std::move(begun.bequests);
  }

  /// The rest of it, by those that are left.
  Finished go_on(const std::vector<Inheritance>& all, const std::vector<int>& left) {
    std::vector<Inheritance> inherited;
    for (const int rank : left) {
      Inheritance& one = inherited.emplace_back(all.at(size_t(rank)));
      one.losses = {{.rank = 7, .device = "cpu:7", .cause = "killed"}};
      one.generation = 1;
      one.left.assign(left.begin(), left.end());
    }
    return run(job::on_ranks(job_, left), inherited);
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
  bool leaves_ = false;    ///< the runs are to stop
  bool only_met_ = false;  ///< they end before their first step
};

double copied_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST_F(BuddyTest, TheReportIsOfTheWholeRun) {
  std::vector<Inheritance> all = run_until(kCopiedEpoch + 2);
  for (Inheritance& one : all) one.oom_steps = 3, one.totals.oom_steps = 2;
  const Finished rest = go_on(all, {1, 2});
  ASSERT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.history["last_step"], Json({1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14}))
      << "of the last step before the loss, and of the run, there are no times";
  EXPECT_EQ(rest.report.history["share"].size(), 2U);
  EXPECT_NEAR(rest.report.history["share"][0][0], 0.5, 0.01) << "of all three";
  EXPECT_GE(rest.report.communication_s, all[1].log.communication_s);
  EXPECT_GT(all[1].log.communication_s, 0);
  EXPECT_EQ(rest.report.oom_steps, 3);
  EXPECT_EQ(rest.report.devices[0].oom_steps, 2);
  EXPECT_EQ(all[1].timed.samples, 60 + 10 + 60 + 60) << "without the first three";
  EXPECT_EQ(rest.report.timed_samples, all[1].timed.samples + 4 * 60 + 10) << "nor the first three after the loss";
  EXPECT_GT(rest.report.timed_s, all[1].timed.seconds);
}

TEST_F(BuddyTest, WhatWasRecordedBeforeALossIsReported) {
  job_.output.profile = 2;
  const std::vector<Inheritance> all = run_until(kCopiedEpoch + 2);
  const Finished rest = go_on(all, {0, 2});
  ASSERT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.profile["first_step"], kUntimedSteps + 1);
  ASSERT_EQ(rest.report.profile["devices"].size(), 2U);
  EXPECT_EQ(rest.report.profile["devices"][1], all[0].profile["devices"][2]);
  std::vector<Inheritance> one_without = all;
  one_without[2].profile = Json();
  EXPECT_EQ(go_on(one_without, {0, 2}).report.profile["first_step"], kCopiedEpoch + 2 + kUntimedSteps + 1);
}

TEST_F(BuddyTest, WhatEarlierChangesHaveCostIsReportedAsItWas) {
  std::vector<Inheritance> all = run_until(3);
  for (Inheritance& one : all) {
    one.losses = {{.rank = 6, .cause = "killed", .step = 2, .resumed_from = 1, .state = "checkpoint", .seconds = 5},
                  {.rank = 7, .cause = "killed"}};
    one.joins = {{.rank = 2, .step = 1, .seconds = 4}};
    one.checkpoints.written = 3;
    one.generation = 2;
    one.left = {0, 1, 2};
  }
  const Finished rest = run(job_, all);
  ASSERT_EQ(rest.error, "");
  ASSERT_EQ(rest.report.lost_ranks.size(), 2U);
  EXPECT_EQ(to_json(rest.report.lost_ranks[0]), to_json(all[0].losses[0]));
  EXPECT_EQ(rest.report.lost_ranks[1].resumed_from, 3);
  ASSERT_EQ(rest.report.joined_ranks.size(), 1U);
  EXPECT_EQ(to_json(rest.report.joined_ranks[0]), to_json(all[0].joins[0]));
  EXPECT_EQ(rest.report.checkpoints.written, 3);
}

// 1e-6: sums of float32 in another order, over eight steps.
TEST_F(BuddyTest, WhicheverRankIsLostTheOthersHaveItsPart) {
  job_.train.average = 0.9;
  const Finished whole = run(job_);
  ASSERT_EQ(whole.error, "");
  const std::vector<Inheritance> all = run_until(kCopiedEpoch + 2);
  for (const std::vector<int>& left : {std::vector{1, 2}, {0, 2}, {0, 1}}) {
    SCOPED_TRACE(left[0] + left[1]);
    const Finished rest = go_on(all, left);
    ASSERT_EQ(rest.error, "");
    EXPECT_LT(copied_difference(rest.parameters, whole.parameters), 1e-6);
    EXPECT_EQ(rest.report.steps, kCopiedSteps);
    ASSERT_EQ(rest.report.lost_ranks.size(), 1U);
    EXPECT_EQ(rest.report.lost_ranks[0].state, "memory");
    EXPECT_EQ(rest.report.lost_ranks[0].resumed_from, kCopiedEpoch + 2);
    EXPECT_EQ(rest.report.lost_ranks[0].step, kCopiedEpoch + 2);
    for (size_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_NEAR(rest.report.loss_per_epoch.at(epoch), whole.report.loss_per_epoch.at(epoch), 1e-6);
  }
}

TEST_F(BuddyTest, AStepWhoseCopiesAreNotAllThereIsTakenBack) {
  const Finished whole = run(job_);
  const std::vector<Inheritance> all = run_until(kCopiedEpoch + 2);
  Copies& broken = *all[1].copies.at(0);  // rank 0 is lost, and its part of the last step has not come to rank 1
  for (Copies::Part& part : broken.others)
    if (part.step == kCopiedEpoch + 2) part.step = Copies::kNone;
  const Finished rest = go_on(all, {1, 2});
  ASSERT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.lost_ranks.at(0).resumed_from, kCopiedEpoch + 1);
  EXPECT_EQ(rest.report.lost_ranks.at(0).step, kCopiedEpoch + 2);
  EXPECT_LT(copied_difference(rest.parameters, whole.parameters), 1e-6);
}

// A rank is lost again while the new copies are on their way: its own has not come to the next rank.
TEST_F(BuddyTest, TheOldCopiesServeUntilAllHaveNewOnes) {
  const Finished whole = run(job_);
  const std::vector<Inheritance> begun = run_until(kCopiedEpoch + 2);
  only_met_ = true;
  std::vector<Inheritance> met = go_on(begun, {0, 1, 2}).bequests;
  only_met_ = false;
  ASSERT_EQ(met[1].copies.size(), 2U);
  for (Copies::Part& part : met[1].copies.back()->others) part.step = Copies::kNone;
  const Finished rest = go_on(met, {1, 2});
  ASSERT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.lost_ranks.at(0).resumed_from, kCopiedEpoch + 2);
  EXPECT_LT(copied_difference(rest.parameters, whole.parameters), 1e-6);
}

TEST_F(BuddyTest, OneRankAfterTheOtherMayBeLost) {
  const Finished whole = run(job_);
  std::vector<Inheritance> two = run_until(2);
  std::vector<Inheritance> left;
  for (const size_t rank : {0, 1}) {
    left.push_back(two[rank]);
    left.back().losses = {{.rank = 2, .device = "cpu:2", .cause = "killed"}};
    left.back().generation = 1;
    left.back().left = {0, 1};
  }
  job::TrainJob next = job::on_ranks(job_, {0, 1});
  next.train.max_steps = 4;
  Finished begun = run(next, left);
  ASSERT_EQ(begun.error, "");
  job_ = job::on_ranks(job_, {0, 1});
  begun.bequests[0].losses.clear();
  const Finished rest = go_on(begun.bequests, {1});
  ASSERT_EQ(rest.error, "");
  EXPECT_EQ(rest.report.lost_ranks.at(0).resumed_from, 4);
  EXPECT_LT(copied_difference(rest.parameters, whole.parameters), 1e-6);
}

TEST_F(BuddyTest, OwnersGoOnFromWhatTheyHadUnrounded) {
  if (!testing::cpu_has_bf16()) GTEST_SKIP() << testing::kNoBf16;
  job_.train.precision = job::Precision::bf16;
  job_.train.max_steps = 4;
  const Finished whole = run(job_);
  ASSERT_EQ(whole.report.sent_as, torch::kBFloat16);
  const Finished rest = go_on(run_until(3), {0, 1, 2});
  ASSERT_EQ(rest.error, "");
  EXPECT_TRUE(rest.parameters.equal(whole.parameters)) << "the same ranks have the same bits";
}

// As with fp16, whose first loss scale is found by steps that are skipped: the first update is still to come.
TEST_F(BuddyTest, WhereNoStepWasAppliedTheyGoOnFromTheFirstParameters) {
  testing::write_two_layers(job_.model.path, 12 * 12, 2);
  job_.train.average = 0.9;
  for (const auto precision : {job::Precision::fp32, job::Precision::bf16}) {
    if (precision == job::Precision::bf16 && !testing::cpu_has_bf16()) GTEST_SKIP() << testing::kNoBf16;
    SCOPED_TRACE(int(precision));
    job_.train.precision = precision;
    job_.train.max_steps = 4;
    const Finished whole = run(job_);
    ASSERT_EQ(whole.report.skipped_steps, 2) << whole.error;
    const std::vector<Inheritance> all = run_until(2);
    EXPECT_EQ(all[0].copies.at(0)->own[1].progress.optimizer_steps, 0);
    const Finished rest = go_on(all, {0, 1, 2});
    ASSERT_EQ(rest.error, "");
    EXPECT_EQ(rest.report.skipped_steps, 2);
    EXPECT_EQ(rest.report.lost_ranks.at(0).resumed_from, 2);
    EXPECT_TRUE(rest.parameters.equal(whole.parameters)) << "the same ranks have the same bits";
  }
}

/// Two ranks that return after so many steps, as somebody asks to join; and what they and one that joins go on with.
std::vector<Inheritance> interrupted_after(int steps, const job::TrainJob& two) {
  std::vector<Inheritance> all(3);
  const std::atomic<bool> leaving = false;
  const Events events(-1);
  comm::run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    int asked = 0;
    const auto trainer =
        Trainer::create(two, communicator, events, leaving, {.has_candidate = [&] { return ++asked == steps; }});
    ASSERT_TRUE(trainer) << trainer.error().message;
    ASSERT_TRUE((*trainer)->run());
    ASSERT_TRUE((*trainer)->is_interrupted());
    ASSERT_TRUE((*trainer)->keep_state());
    all[size_t(communicator.rank())] = (*trainer)->bequest();
  });
  for (Inheritance& one : all) {
    one.joins = {{.rank = 2, .device = "cpu:2"}};
    one.generation = 1;
    one.left = {0, 1, Inheritance::kJoins};
  }
  return all;
}

// At the end of an epoch, too, whose evaluation is still to come.
TEST_F(BuddyTest, OneThatJoinsGetsItsPartFromTheOthers) {
  const Finished whole = run(job_);
  for (const int steps : {2, kCopiedEpoch})
    for (const bool buddy : {false, true}) {
      SCOPED_TRACE(fmt::format("{} steps, buddy {}", steps, buddy));
      job_.elastic = {.ranks_lost = buddy ? 1 : 0, .buddy = buddy};
      const std::vector<Inheritance> all = interrupted_after(steps, job::on_ranks(job_, {0, 1}));
      const Finished rest = run(job_, all);
      ASSERT_EQ(rest.error, "");
      EXPECT_EQ(rest.report.steps, kCopiedSteps);
      EXPECT_LT(copied_difference(rest.parameters, whole.parameters), 1e-6);
      for (size_t epoch = 0; epoch < 3; ++epoch)
        EXPECT_NEAR(rest.report.loss_per_epoch.at(epoch), whole.report.loss_per_epoch.at(epoch), 1e-6);
      ASSERT_EQ(rest.report.joined_ranks.size(), 1U);
      EXPECT_EQ(rest.report.joined_ranks[0].step, steps);
      EXPECT_GT(rest.report.joined_ranks[0].seconds, 0);
      ASSERT_EQ(rest.report.history["share"].size(), 3U);
      EXPECT_EQ(rest.report.history["share"][2][0], 0) << "it has had no samples before";
      EXPECT_EQ(rest.bequests[2].copies.size(), buddy ? 1U : 0U) << "nor did it hold a copy of the others' state";
    }
}

TEST_F(BuddyTest, NobodyIsLetInAfterTheLastStep) {
  job_.train.max_steps = 2;
  const std::atomic<bool> leaving = false;
  const Events events(-1);
  comm::run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    int steps = 0;
    const auto trainer =
        Trainer::create(job_, communicator, events, leaving, {.has_candidate = [&] { return ++steps == 2; }});
    const auto report = (*trainer)->run();
    EXPECT_FALSE((*trainer)->is_interrupted());
    EXPECT_EQ(report->steps, 2);
  });
}

TEST_F(BuddyTest, ARankAndItsBuddyLostAtOnceTakeItsPartAlong) {
  const Finished rest = go_on(run_until(3), {0});
  EXPECT_THAT(rest.error, HasSubstr("nothing holds the state of the run: elastic.buddy keeps it in memory"));
}

// Of devices whose speeds are known nothing is measured, which would find out, too, that the run is to stop.
TEST_F(BuddyTest, AStateThatNobodyHasIsNoErrorWhereTheRunIsToStopAnyway) {
  const job::TrainJob two = job::on_ranks(job_, {0, 1});
  std::vector<Inheritance> all = interrupted_after(3, two);
  all.pop_back();
  for (Inheritance& one : all) one.copies.clear(), one.left = {0, 1};
  EXPECT_EQ(run(two, all).error, "no rank holds the state of the run");
  leaves_ = true;
  const Finished stopped = run(two, all);
  EXPECT_EQ(stopped.error, "");
  EXPECT_TRUE(stopped.report.stopped);
}

}  // namespace
}  // namespace remuda::train
